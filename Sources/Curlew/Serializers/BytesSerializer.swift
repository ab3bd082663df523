// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Gives the body as it came, decoded from its content codings.
///
/// ```swift
/// let sound = BytesSerializer(accepting: ["audio/mpeg", "audio/ogg;q=0.5"])
/// ```
public struct BytesSerializer: ResponseSerializer {
    /// What it is for: becomes `Accept`, and the rule for the response's `Content-Type`.
    public let accepts: [MediaType]

    /// Reads bytes of some types; of any unless given.
    ///
    /// An empty list takes every type as well, and writes no `Accept`: what the fields of the client or the session say is
    /// sent.
    public init(accepting types: [MediaType] = [.any]) {
        accepts = types
    }

    /// Reads the whole body.
    ///
    /// - Throws: `NetworkError`: whatever ended the transfer.
    public func output(from response: IncomingResponse) async throws -> Data { try await response.collect() }
}

extension ResponseSerializer where Self == BytesSerializer {
    /// The body as it came, of any type.
    public static var bytes: BytesSerializer { BytesSerializer() }

    /// The body as it came, if it is of one of these types; of any type if there are none.
    public static func bytes(accepting types: [MediaType]) -> BytesSerializer { BytesSerializer(accepting: types) }
}
