// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The elements of a sequence as bytes, each written when it is asked for.
struct WrittenSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    let base: Base
    /// Writes an element, whose number is given, from 1.
    let write: @Sendable (Base.Element, _ number: Int) throws -> [UInt8]

    struct Iterator: AsyncIteratorProtocol {
        private var base: Base.AsyncIterator
        private let write: @Sendable (Base.Element, Int) throws -> [UInt8]
        private var count = 0

        fileprivate init(_ sequence: WrittenSequence) {
            base = sequence.base.makeAsyncIterator()
            write = sequence.write
        }

        mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            guard let element = try await base.next(isolation: actor) else { return nil }
            count += 1
            return try write(element, count)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }
}

/// The elements of a sequence at hand as bytes: as many at once as make a chunk that is worth sending.
struct WrittenElements<Base: Sequence & Sendable>: AsyncSequence, Sendable {
    /// How many bytes are worth sending.
    private static var enough: Int { 16 << 10 }

    let base: Base
    /// Writes an element, whose number is given, from 1.
    let write: @Sendable (Base.Element, _ number: Int) throws -> [UInt8]

    struct Iterator: AsyncIteratorProtocol {
        private var base: Base.Iterator
        private let write: @Sendable (Base.Element, Int) throws -> [UInt8]
        private var count = 0

        fileprivate init(_ sequence: WrittenElements) {
            base = sequence.base.makeIterator()
            write = sequence.write
        }

        mutating func next() async throws -> [UInt8]? {
            var chunk: [UInt8] = []
            while chunk.count < WrittenElements.enough, let element = base.next() {
                count += 1
                chunk += try write(element, count)
            }
            return chunk.isEmpty ? nil : chunk
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }
}

extension JSON {
    /// A value as a line of NDJSON: what an encoder that prints prettily puts between the tokens becomes spaces.
    func line(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        var bytes = try element(value, number)
        for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
            bytes[index] = UInt8(ascii: " ")
        }
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// A value as a text of a JSON text sequence (RFC 7464 §2.2).
    func record(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        [0x1E] + (try element(value, number)) + [UInt8(ascii: "\n")]
    }

    private func element(_ value: some Encodable, _ number: Int) throws(NetworkError) -> [UInt8] {
        do { return Array(try encode(value)) } catch { throw .encoding(error, at: "Element \(number)") }
    }
}

extension LengthPrefix {
    /// Bytes with their length before them.
    func frame(_ content: some Sequence<UInt8>, _ number: Int) throws(NetworkError) -> [UInt8] {
        let content = Array(content)
        guard let prefix = bytes(for: content.count) else {
            throw NetworkError(
                .encodingFailed, phase: .preparing,
                "Frame \(number) has \(content.count) bytes, more than its length prefix can say.",
                hint: "Use a wider prefix, or a varint.")
        }
        return prefix + content
    }
}
