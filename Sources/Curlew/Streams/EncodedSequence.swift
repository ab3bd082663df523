// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The bytes around all elements of a body.
struct BodyEnds: Sendable {
    /// The bytes before the first element.
    var start: [UInt8] = []
    /// The bytes after the last element.
    var end: [UInt8] = []
}

/// The encoded elements of an asynchronous sequence; each is encoded when the iterator requests it.
struct EncodedSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    let base: Base
    let ends: BodyEnds
    /// Encodes an element; its number starts at 1.
    let write: @Sendable (Base.Element, _ number: Int) throws -> [UInt8]

    struct Iterator: AsyncIteratorProtocol {
        private var base: Base.AsyncIterator
        private let write: @Sendable (Base.Element, Int) throws -> [UInt8]
        private let ends: BodyEnds
        private var count = 0
        private var isOver = false

        fileprivate init(_ sequence: EncodedSequence) {
            base = sequence.base.makeAsyncIterator()
            ends = sequence.ends
            write = sequence.write
        }

        mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            if isOver { return nil }
            let start = count == 0 ? ends.start : []
            guard let element = try await base.next(isolation: actor) else {
                isOver = true
                let rest = start + ends.end
                return rest.isEmpty ? nil : rest
            }
            count += 1
            return start + (try write(element, count))
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }
}

/// The encoded elements of a synchronous sequence, combined into chunks of at least 16 KiB, except the last.
struct EncodedElements<Base: Sequence & Sendable>: AsyncSequence, Sendable {
    /// The minimum size of a chunk, except the last.
    private static var minimumChunkSize: Int { 16 << 10 }

    let base: Base
    let ends: BodyEnds
    /// Encodes an element; its number starts at 1.
    let write: @Sendable (Base.Element, _ number: Int) throws -> [UInt8]

    struct Iterator: AsyncIteratorProtocol {
        private var base: Base.Iterator
        private let write: @Sendable (Base.Element, Int) throws -> [UInt8]
        private let ends: BodyEnds
        private var count = 0
        private var isOver = false

        fileprivate init(_ sequence: EncodedElements) {
            base = sequence.base.makeIterator()
            ends = sequence.ends
            write = sequence.write
        }

        mutating func next() async throws -> [UInt8]? {
            var chunk = count == 0 && !isOver ? ends.start : []
            while chunk.count < EncodedElements.minimumChunkSize, !isOver {
                if let element = base.next() {
                    count += 1
                    chunk += try write(element, count)
                } else {
                    isOver = true
                    chunk += ends.end
                }
            }
            return chunk.isEmpty ? nil : chunk
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }
}

extension JSON {
    /// Returns a value as a line of NDJSON; line breaks from a pretty-printing encoder become spaces.
    func line(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        var bytes = try element(value, number)
        for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
            bytes[index] = UInt8(ascii: " ")
        }
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// Returns a value as a text of a JSON text sequence (RFC 7464 §2.2).
    func record(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        [0x1E] + (try element(value, number)) + [UInt8(ascii: "\n")]
    }

    /// Returns a value as an element of an array, with a leading comma except for the first element.
    func member(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        let bytes = try element(value, number)
        return number == 1 ? bytes : [UInt8(ascii: ",")] + bytes
    }

    private func element(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        do { return Array(try encode(value)) } catch { throw .encoding(error, at: "Element \(number)") }
    }
}

extension Streams.LengthPrefix {
    /// Returns bytes with their length prefix.
    func frame(_ content: some Sequence<UInt8>, _ number: Int) throws(NetworkError) -> [UInt8] {
        let content = Array(content)
        guard let prefix = bytes(for: content.count) else {
            throw NetworkError(
                .encodingFailed, phase: .preparing,
                "Frame \(number) has \(content.count) bytes, more than its length prefix can represent.",
                hint: "Use a wider prefix or a varint.")
        }
        return prefix + content
    }
}
