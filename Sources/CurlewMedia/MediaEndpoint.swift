// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewEngine
internal import CurlewSupport

/// An HTTP/1.1 server on the loopback interface from which a media player on this machine reads files of a cache.
///
/// The player gets a URL with a random token, and reads ranges of the file in any order while it arrives. Only URLs
/// that the endpoint has made are served, and only to requests whose `Host` is the endpoint itself, so that a web page
/// cannot reach it by a name that points to this machine.
///
/// ```swift
/// let endpoint = try MediaEndpoint(cache)
/// let url = try endpoint.url(for: "https://example.com/film.mp4")
/// // mpv, VLC, GStreamer and browsers play http://127.0.0.1:…/…
/// await endpoint.close()
/// ```
///
/// It answers GET and HEAD with 200, 206, 304, 412 and 416 (RFC 9110 §13, §14), and several ranges with the whole file.
/// A failure of the server is a 502 or 504, or ends the connection after the head. An endpoint that is released closes
/// itself.
public final class MediaEndpoint: Sendable {
    /// The limits of an endpoint.
    ///
    /// ```swift
    /// let endpoint = try MediaEndpoint(cache, options: MediaEndpoint.Options(connections: 8))
    /// ```
    public struct Options: Sendable, Hashable {
        /// The maximum number of connections at the same time, at least 1; 32 unless set.
        ///
        /// Further connections wait in the kernel until one of the others ends.
        public var connections: Int
        /// The time after which a connection is closed that sends no request, or takes no byte of a response; two
        /// minutes unless set.
        public var idleTimeout: Duration
        /// The maximum number of URLs, at least 1; 1024 unless set.
        ///
        /// Beyond the limit, a new URL ends the oldest one.
        public var urls: Int

        /// Creates options.
        public init(connections: Int = 32, idleTimeout: Duration = .seconds(120), urls: Int = 1024) {
            self.connections = connections
            self.idleTimeout = idleTimeout
            self.urls = urls
        }
    }

    /// The origin of the URLs, such as `http://127.0.0.1:40123`.
    public let origin: String
    /// The port, which the system has chosen.
    public let port: UInt16
    private let core: EndpointCore

    /// Starts an endpoint at 127.0.0.1.
    ///
    /// - Parameters:
    ///   - cache: The cache with the files.
    ///   - options: The limits; all defaults unless given.
    /// - Throws: `NetworkError` of kind `.resourceExhausted` when the system gives no socket or thread.
    public init(_ cache: MediaCache, options: Options = Options()) throws(NetworkError) {
        do throws(DiskFailure) {
            core = try EndpointCore(cache, options)
        } catch {
            throw NetworkError(
                .resourceExhausted, phase: .preparing, "The endpoint cannot be started: \(error).", cause: error)
        }
        port = core.port
        origin = "http://127.0.0.1:\(core.port)"
        core.start()
    }

    deinit { core.close() }

    /// Returns the URL under which a player reads a file; the same one for equal requests.
    ///
    /// - Parameter request: A request as for ``MediaCache/media(for:)``. Its credentials stay in this process.
    /// - Returns: A URL with 128 random bits. A program that knows it can read the file while the endpoint runs.
    /// - Throws: `NetworkError` of kind `.invalidRequest`.
    public func url(for request: Request) throws(NetworkError) -> String {
        origin + "/" + core.token(for: request, try MediaKey(request))
    }

    /// Ends a URL; connections that use it continue.
    ///
    /// - Parameter url: A URL from ``url(for:)``.
    /// - Returns: Whether the URL was served before.
    @discardableResult
    public func remove(url: String) -> Bool {
        guard url.hasPrefix(origin + "/") else { return false }
        return core.remove(String(url.dropFirst(origin.utf8.count + 1)))
    }

    /// The number of open connections.
    public var connectionCount: Int { core.connectionCount }

    /// Closes the port and all connections, and waits until their tasks have ended.
    public func close() async {
        core.close()
        await core.waitForEnd()
    }
}
