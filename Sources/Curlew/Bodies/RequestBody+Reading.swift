// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A request's body as chunks of at most 64 KiB, read by the iterating task instead of being sent.
///
/// A body that can be read only once is used up by the iteration.
package struct BodyChunks: AsyncSequence, Sendable {
    package typealias Element = [UInt8]
    package typealias Failure = NetworkError

    package let body: RequestBody

    package init(body: RequestBody) { self.body = body }

    package func makeAsyncIterator() -> Iterator { Iterator(body: body) }

    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let body: RequestBody
        private var tap: BodyTap?

        fileprivate init(body: RequestBody) { self.body = body }

        package mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }

        package mutating func next(isolation actor: isolated (any Actor)?) async throws(NetworkError) -> [UInt8]? {
            let tap: BodyTap
            if let known = self.tap { tap = known } else { tap = try body.tapped() }
            self.tap = tap
            do throws(BodyTap.Failure) { return try await tap.next() } catch { throw NetworkError(error) }
        }
    }
}

extension RequestBody {
    fileprivate func tapped() throws(NetworkError) -> BodyTap {
        do throws(SourceFailure) { return BodyTap(try upload()) } catch { throw .unreadableBody(error) }
    }

    /// Returns the number of bytes of the body, or nil when it is unknown before the end; queries the file for its
    /// size.
    /// - Throws: `NetworkError` of kind `invalidRequest`.
    package func knownLength() throws(NetworkError) -> Int64? {
        guard let source else { return 0 }
        do throws(SourceFailure) { return try source.measuredLength() } catch { throw .unreadableBody(error) }
    }

    /// Reads the whole body; returns nil when it has more bytes than the limit.
    /// - Throws: `NetworkError` of kind `invalidRequest`, `bodyFailed`, `bodyNotReplayable` or `cancelled`.
    package func collected(upTo limit: Int) async throws(NetworkError) -> [UInt8]? {
        if let bytes { return bytes.count <= limit ? bytes : nil }
        var all: [UInt8] = []
        for try await piece in BodyChunks(body: self) {
            guard all.count + piece.count <= limit else { return nil }
            all += piece
        }
        return all
    }

    /// Whether the body is a file that does not exist.
    package var isMissingFile: Bool { source?.isMissing ?? false }
}

extension NetworkError {
    fileprivate static func unreadableBody(_ failure: SourceFailure) -> NetworkError {
        NetworkError(invalid: .body, "The request body is unusable: \(failure).", cause: failure)
    }
}
