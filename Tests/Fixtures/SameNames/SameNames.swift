// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Types with the names of Curlew's, as web frameworks export them.
public struct Request: Sendable {
    /// The path of the request.
    public var path: String

    /// Creates a request that a server received.
    public init(path: String) { self.path = path }
}

/// The response that a server sends.
public struct Response: Sendable {
    /// The status of the response.
    public var status: Int

    /// Creates a response.
    public init(status: Int) { self.status = status }
}

/// A connection to a server.
public struct Client: Sendable {
    /// Creates a client.
    public init() {}
}

/// The data of a signed-in user.
public struct Session: Sendable {
    /// Creates a session.
    public init() {}
}
