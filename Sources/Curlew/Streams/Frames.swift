// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension Streams {
    /// A serializer that reads the frames of a body as they arrive; each frame follows its length.
    ///
    /// A body that ends inside a frame throws `.decodingFailed`.
    ///
    /// ```swift
    /// for try await frame in api.stream("feed", using: .frames(lengthPrefix: .varint)) { print(frame.count) }
    /// ```
    public struct Frames: StreamSerializer {
        private let prefix: Streams.LengthPrefix
        private let limit: ByteCount

        /// Creates a serializer of frames.
        ///
        /// - Parameters:
        ///   - lengthPrefix: The encoding of the lengths.
        ///   - limit: The maximum size of a frame, 1 MiB by default; a longer frame is `.bodyTooLarge`, before any of
        ///     its bytes is stored.
        public init(lengthPrefix: Streams.LengthPrefix, limit: ByteCount = .mebibytes(1)) {
            prefix = lengthPrefix
            self.limit = limit
        }

        /// The state between chunks: the start of a frame.
        public struct State: Sendable {
            fileprivate var prefix: [UInt8] = []
            fileprivate var frame = Data()
            /// The number of missing bytes of the frame; nil before its prefix is complete.
            fileprivate var missing: Int?
            fileprivate var count = 0
        }

        /// Creates the state for a response.
        public func begin(_ head: ResponseHead) -> State { State() }

        /// Returns the frames that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Data] {
            try elements(of: chunk, &state)
        }

        /// Appends the frames that a chunk completes.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
        public func decode(_ chunk: ByteChunk?, _ state: inout State, into frames: inout [Data]) throws {
            guard let chunk else { return try state.checkEnd() }
            try chunk.withSpan { bytes in
                var position = 0
                while position < bytes.count {
                    if state.missing == nil {
                        try read(bytes[position], &state)
                        position += 1
                    }
                    if let frame = state.take(from: bytes, &position) { frames.append(frame) }
                }
            }
        }

        private func read(_ byte: UInt8, _ state: inout State) throws {
            state.prefix.append(byte)
            switch prefix.read(state.prefix) {
            case .incomplete: return
            case .overflow:
                throw NetworkError.malformedFraming("The length of frame \(state.count + 1) has more than 64 bits.")
            case .length(let length):
                guard length <= UInt64(max(0, limit.bytes)) else {
                    throw NetworkError.elementTooLarge("Frame \(state.count + 1)", limit)
                }
                state.missing = Int(length)
                state.prefix = []
            }
        }
    }
}

extension Streams.Frames.State {
    /// Takes the available bytes of the frame, and returns the frame if it is complete.
    fileprivate mutating func take(from bytes: Span<UInt8>, _ position: inout Int) -> Data? {
        guard let missing else { return nil }
        let part = bytes.extracting(position..<position + min(missing, bytes.count - position))
        position += part.count
        if frame.isEmpty { frame = part.data } else { frame.append(part.data) }
        self.missing = missing - part.count
        guard part.count == missing else { return nil }
        count += 1
        self.missing = nil
        defer { frame = Data() }
        return frame
    }

    fileprivate func checkEnd() throws {
        if let missing {
            throw NetworkError.malformedFraming(
                "The stream ends inside frame \(count + 1): \(frame.count) of \(frame.count + missing) bytes arrived.")
        }
        if !prefix.isEmpty {
            throw NetworkError.malformedFraming("The stream ends inside the length of frame \(count + 1).")
        }
    }
}

extension StreamSerializer where Self == Streams.Frames {
    /// Frames that each follow their length.
    ///
    /// - Parameters:
    ///   - lengthPrefix: The encoding of the lengths.
    ///   - limit: The maximum size of a frame, 1 MiB by default; a longer frame is `.bodyTooLarge`.
    public static func frames(lengthPrefix: Streams.LengthPrefix, limit: ByteCount = .mebibytes(1)) -> Streams.Frames {
        Streams.Frames(lengthPrefix: lengthPrefix, limit: limit)
    }
}
