// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The frames of a body in which the length of each is written before it, as they arrive.
///
/// A body that ends inside a frame is `.decodingFailed`.
///
/// ```swift
/// for try await frame in api.stream("feed", using: .frames(lengthPrefix: .varint)) { print(frame.count) }
/// ```
public struct Frames: StreamSerializer {
    private let prefix: LengthPrefix
    private let limit: ByteCount

    /// Reads frames.
    ///
    /// - Parameters:
    ///   - lengthPrefix: How their lengths are written.
    ///   - limit: How many bytes a frame may have, 1 MiB unless given; a longer one is `.bodyTooLarge`, before a byte of it
    ///     is kept.
    public init(lengthPrefix: LengthPrefix, limit: ByteCount = .mebibytes(1)) {
        prefix = lengthPrefix
        self.limit = limit
    }

    /// What is kept between chunks: the start of a frame.
    public struct State: Sendable {
        fileprivate var prefix: [UInt8] = []
        fileprivate var frame = Data()
        /// How much of the frame has not come; nil before its prefix is complete.
        fileprivate var missing: Int?
        fileprivate var count = 0
    }

    /// Begins with a response.
    public func begin(_ head: ResponseHead) -> State { State() }

    /// The frames that a chunk completes.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` or `.bodyTooLarge`.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [Data] { try elements(of: chunk, &state) }

    /// Adds the frames that a chunk completes.
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
        case .overflow: throw NetworkError.misframed("The length of frame \(state.count + 1) has more than 64 bits.")
        case .length(let length):
            guard length <= UInt64(max(0, limit.bytes)) else {
                throw NetworkError.elementTooLarge("Frame \(state.count + 1)", limit)
            }
            state.missing = Int(length)
            state.prefix = []
        }
    }
}

extension Frames.State {
    /// Takes what there is of the frame; the frame, when it is complete.
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
            throw NetworkError.misframed(
                "The stream ends inside frame \(count + 1): \(frame.count) of its \(frame.count + missing) bytes came.")
        }
        if !prefix.isEmpty {
            throw NetworkError.misframed("The stream ends inside the length of frame \(count + 1).")
        }
    }
}

extension StreamSerializer where Self == Frames {
    /// Frames, with the length of each before it.
    ///
    /// - Parameters:
    ///   - lengthPrefix: How their lengths are written.
    ///   - limit: How many bytes a frame may have, 1 MiB unless given; a longer one is `.bodyTooLarge`.
    public static func frames(lengthPrefix: LengthPrefix, limit: ByteCount = .mebibytes(1)) -> Frames {
        Frames(lengthPrefix: lengthPrefix, limit: limit)
    }
}
