// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A pool of idle coders.
///
/// The pool is lock-free: a coder is in one slot or belongs to one call.
struct CoderPool<Coder: AnyObject>: ~Copyable, Sendable {
    private let first = Atomic<UInt>(0)
    private let second = Atomic<UInt>(0)

    deinit {
        _ = CoderPool.take(first)
        _ = CoderPool.take(second)
    }

    /// Takes an idle coder; nil if the pool is empty.
    func take() -> Coder? { CoderPool.take(first) ?? CoderPool.take(second) }

    /// Returns a coder that has no other owner to the pool.
    func put(_ coder: Coder) {
        if !CoderPool.put(coder, first) { _ = CoderPool.put(coder, second) }
    }

    private static func take(_ slot: borrowing Atomic<UInt>) -> Coder? {
        guard slot.load(ordering: .relaxed) != 0,
            let address = UnsafeRawPointer(bitPattern: slot.exchange(0, ordering: .acquiring))
        else { return nil }
        return Unmanaged<Coder>.fromOpaque(address).takeRetainedValue()
    }

    private static func put(_ coder: Coder, _ slot: borrowing Atomic<UInt>) -> Bool {
        let kept = Unmanaged.passRetained(coder)
        let address = UInt(bitPattern: kept.toOpaque())
        if slot.compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged { return true }
        kept.release()
        return false
    }
}

/// Decodes by a plan.
final class DecodingPool: Sendable {
    let plan: DecodingPlan
    private let cores = CoderPool<DecodingCore>()

    init(_ plan: DecodingPlan) {
        self.plan = plan
    }

    /// Decodes a text in any encoding of Unicode.
    func decode<T: Decodable>(_ type: T.Type, unicode bytes: some Collection<UInt8>) throws -> T {
        let converted: [UInt8]?
        do throws(JSONFlaw) {
            converted = try JSONEncodings.utf8(bytes)
        } catch {
            throw [UInt8]().withUnsafeBufferPointer { DecodingError(error, in: $0.span) }
        }
        if let converted { return try converted.withUnsafeBufferPointer { try decode(type, $0) } }
        let value = try bytes.withContiguousStorageIfAvailable { try decode(type, withoutMark: $0) }
        return try value ?? Array(bytes).withUnsafeBufferPointer { try decode(type, withoutMark: $0) }
    }

    /// Decodes a text in UTF-8; nil when it may be in another encoding of Unicode.
    func decodePlain<T: Decodable>(_ type: T.Type, _ bytes: Span<UInt8>) throws -> T? {
        guard bytes.count >= 2, bytes[0] != 0, bytes[1] != 0, bytes[0] < 0x80 else { return nil }
        return try bytes.withUnsafeBufferPointer { try decode(type, $0) }
    }

    private func decode<T: Decodable>(_ type: T.Type, withoutMark bytes: UnsafeBufferPointer<UInt8>) throws -> T {
        let isMarked = bytes.starts(with: JSONEncodings.mark)
        return try decode(type, UnsafeBufferPointer(rebasing: bytes[(isMarked ? JSONEncodings.mark.count : 0)...]))
    }

    /// Decodes a text in UTF-8 without a byte order mark.
    func decode<T: Decodable>(_ type: T.Type, _ bytes: UnsafeBufferPointer<UInt8>) throws -> T {
        var core = cores.take() ?? DecodingCore(plan)
        defer { recycle(&core) }
        return try core.decode(type, bytes)
    }

    private func recycle(_ core: inout DecodingCore) {
        guard core.release(), isKnownUniquelyReferenced(&core) else { return core.outlive() }
        core.reset()
        cores.put(core)
    }
}

/// Encodes by a plan.
final class EncodingPool: Sendable {
    let plan: EncodingPlan
    private let writers = CoderPool<JSONWriter>()

    init(_ plan: EncodingPlan) {
        self.plan = plan
    }

    /// Encodes a value and passes the text to a closure.
    func encode<T: Encodable, Result>(
        _ value: T, _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) throws -> Result {
        var writer = writers.take() ?? JSONWriter(plan)
        defer {
            if writer.release(), isKnownUniquelyReferenced(&writer) { writers.put(writer) } else { writer.kept.close() }
        }
        return try writer.encode(value, body)
    }
}
