// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The received bytes that have not been consumed yet, including pipelined requests.
final class RequestInput {
    let stream: any ByteStream
    private var bytes: [UInt8] = []
    private var position = 0

    private static let headLimit = 64 * 1024
    private static let lineLimit = 8 * 1024

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    var isEmpty: Bool { position == bytes.count }

    /// Returns the bytes before the empty line; nil if the client closed the connection first.
    func head() throws -> ArraySlice<UInt8>? {
        var isAtStart = true
        while isAtStart {
            if bytes.count - position < 2, try !fill() { return nil }
            if bytes.count - position < 2 { continue }
            // A server ignores empty lines before a request line (RFC 9112 §2.2).
            isAtStart = bytes[position] == 13 && bytes[position + 1] == 10
            if isAtStart { position += 2 }
        }
        return try take(upTo: [13, 10, 13, 10], limit: Self.headLimit, tooLong: 431)
    }

    /// Returns the next line without its line end; nil if the connection closed.
    func line() throws -> ArraySlice<UInt8>? {
        try take(upTo: [13, 10], limit: Self.lineLimit, tooLong: 400)
    }

    /// Returns at least one and at most `limit` bytes; nil if the connection closed.
    func some(_ limit: Int) throws -> ArraySlice<UInt8>? {
        if isEmpty, try !fill() { return nil }
        let end = min(bytes.count, position + limit)
        defer { position = end }
        return bytes[position..<end]
    }

    /// Discards all input until the client closes its side.
    func discardAll() throws {
        repeat {
            position = bytes.count
        } while try fill()
    }

    private func take(upTo mark: [UInt8], limit: Int, tooLong status: Int) throws -> ArraySlice<UInt8>? {
        var searched = position
        while true {
            if let end = find(mark, from: searched) {
                guard end - position <= limit else { break }
                defer { position = end + mark.count }
                return bytes[position..<end]
            }
            guard bytes.count - position <= limit else { break }
            let kept = bytes.count - position
            guard try fill() else { return nil }
            searched = max(position, position + kept - (mark.count - 1))
        }
        throw MalformedRequest("A head or a line is longer than \(limit) bytes.", status: status)
    }

    private func find(_ mark: [UInt8], from start: Int) -> Int? {
        var index = start
        while index + mark.count <= bytes.count {
            if bytes[index] == mark[0], bytes[index..<(index + mark.count)].elementsEqual(mark) { return index }
            index += 1
        }
        return nil
    }

    private func fill() throws -> Bool {
        if position > 0 {
            bytes.removeFirst(position)
            position = 0
        }
        return try stream.receive(appendingTo: &bytes)
    }
}

/// Extracts a request's body from its framing (RFC 9112 §6 and §7.1).
struct BodyDecoder {
    private enum State {
        case bytes(Int)
        case chunkSize
        case chunk(Int)
        case chunkEnd
        case done
    }

    private var state: State
    private(set) var trailers: [(name: String, value: String)] = []

    init(_ framing: BodyFraming) {
        switch framing {
        case .none, .length(0): state = .done
        case .length(let length): state = .bytes(length)
        case .chunked: state = .chunkSize
        }
    }

    var isComplete: Bool {
        if case .done = state { return true }
        return false
    }

    /// Returns the next bytes of the body, at most `limit`; nil at the end of the body.
    mutating func next(from input: RequestInput, limit: Int) throws -> ArraySlice<UInt8>? {
        while true {
            switch state {
            case .done:
                return nil
            case .bytes(let left):
                let piece = try some(input, min(left, limit))
                state = piece.count == left ? .done : .bytes(left - piece.count)
                return piece
            case .chunk(let left):
                let piece = try some(input, min(left, limit))
                state = piece.count == left ? .chunkEnd : .chunk(left - piece.count)
                return piece
            case .chunkEnd:
                guard try line(input).isEmpty else { throw MalformedRequest("A chunk is longer than its size.") }
                state = .chunkSize
            case .chunkSize:
                try beginChunk(input)
            }
        }
    }

    private mutating func beginChunk(_ input: RequestInput) throws {
        let digits = try line(input).prefix { $0 != 59 && $0 != 32 && $0 != 9 }
        let text = String(decoding: digits, as: UTF8.self)
        guard let size = Int(text, radix: 16), digits.first != 43, digits.first != 45 else {
            throw MalformedRequest("\(text) is not a chunk size.")
        }
        guard size == 0 else {
            state = .chunk(size)
            return
        }
        while case let line = try line(input), !line.isEmpty {
            trailers.append(try RequestHead.field(line))
        }
        state = .done
    }

    private func some(_ input: RequestInput, _ limit: Int) throws -> ArraySlice<UInt8> {
        guard let piece = try input.some(limit) else { throw Disconnect.peerClosed }
        return piece
    }

    private func line(_ input: RequestInput) throws -> ArraySlice<UInt8> {
        guard let line = try input.line() else { throw Disconnect.peerClosed }
        return line
    }
}
