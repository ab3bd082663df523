// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The state of one decode: the index of a text, and buffers and tables that the next decode reuses.
///
/// One call of `decode` at a time owns the core, with the decoders and containers of that call. These decoders and
/// containers retain the core. A ``DecodingFrame`` does not retain it during the call, because the call keeps the core
/// alive. At the end of the call, `release` makes each frame in use retain the core. A core that then has other owners
/// is not reused.
final class DecodingCore {
    let plan: DecodingPlan
    let index = JSONIndex()
    private let ways = DecodingTable()
    private var names: [ObjectIdentifier: KeyNames] = [:]
    private let kept = KeptContainers<DecodingFrame>()
    /// The paths of decoders for values that are absent; see ``absent(_:)``.
    private var absentPaths: [[any CodingKey]] = []
    private var walk: [PathStep] = []
    /// Objects that became dictionaries; strategies do not convert their names.
    private var dictionaries: Set<Int> = []

    /// The first index of absent values.
    private static let firstAbsent = 1 << 30

    init(_ plan: DecodingPlan) {
        self.plan = plan
    }

    deinit {
        kept.free()
        ways.free()
        index.free()
    }

    /// Decodes a text; its bytes must stay valid until this returns.
    func decode<T: Decodable>(_ type: T.Type, _ bytes: UnsafeBufferPointer<UInt8>) throws -> T {
        do throws(JSONFlaw) {
            try index.read(bytes)
        } catch {
            throw DecodingError(error, in: bytes.span)
        }
        do {
            return try value(type, at: 0)
        } catch let error as DecodingError {
            throw located(error)
        }
    }

    /// Adds the position in the text to an error; errors of the caller's types lack it.
    private func located(_ error: DecodingError) -> DecodingError {
        func placed(_ context: DecodingError.Context) -> DecodingError.Context {
            let mark: JSONMark
            switch context.underlyingError {
            case let found as JSONMark: mark = found
            case nil: mark = self.mark(place(at: context.codingPath), JSON.Fault.refusal, .value)
            default: return context
            }
            let fault = index.withSpan { JSON.Fault(mark.reason, mark.kind, at: mark.offset, in: $0) }
            return DecodingError.Context(
                codingPath: context.codingPath, debugDescription: context.debugDescription, underlyingError: fault)
        }
        switch error {
        case .typeMismatch(let type, let context): return .typeMismatch(type, placed(context))
        case .valueNotFound(let type, let context): return .valueNotFound(type, placed(context))
        case .keyNotFound(let key, let context): return .keyNotFound(key, placed(context))
        case .dataCorrupted(let context): return .dataCorrupted(placed(context))
        @unknown default: return error
        }
    }

    /// Returns the index of the value at the end of a path, or of the last existing value on the path.
    private func place(at path: [any CodingKey]) -> Int {
        var place = 0
        for (depth, key) in path.enumerated() {
            let entry = index[place]
            guard entry.isContainer else { return place }
            let isObject = entry.code == JSONEntry.Kind.object.rawValue
            var (child, position) = (place + 1, 0)
            var found: Int?
            while child < entry.next, found == nil {
                let name = isObject ? index.string(index[child]) : ""
                if isObject
                    ? name == key.stringValue
                        || plan.keys.converted(name, in: Array(path[..<depth])) == key.stringValue
                    : position == key.intValue
                {
                    found = child + (isObject ? 1 : 0)
                }
                child = index.behind(child + (isObject ? 1 : 0))
                position += 1
            }
            guard let found else { return place }
            place = found
        }
        return place
    }

    /// Ends a decode; containers that the caller's types keep stay valid.
    ///
    /// - Returns: Whether the core may be reused. The caller must also check that it holds the only reference to it.
    func release() -> Bool { kept.release() }

    /// Copies the text, so that containers that a caller still holds stay valid.
    func outlive() {
        kept.close()
        index.adopt()
    }

    /// Clears the text and its state.
    func reset() {
        index.clear()
        if !absentPaths.isEmpty { absentPaths = [] }
        if !walk.isEmpty { walk = [] }
        if !dictionaries.isEmpty { dictionaries = [] }
    }

    // MARK: Entries

    /// Returns the entry at an index; null for an absent value.
    @inline(__always)
    func entry(_ place: Int) -> JSONEntry {
        place < DecodingCore.firstAbsent ? index[place] : JSONEntry(.null, offset: 0, extent: 0)
    }

    /// Returns an index for a value that is not in the text, such as for `superDecoder()` without a `super` member.
    func absent(_ path: [any CodingKey]) -> Int {
        absentPaths.append(path)
        return DecodingCore.firstAbsent + absentPaths.count - 1
    }

    /// Returns the number of values in an array or an object.
    func count(of container: Int) -> Int {
        let entry = index[container]
        var (place, count) = (container + 1, 0)
        let step = entry.code == JSONEntry.Kind.object.rawValue ? 1 : 0
        while place < entry.next {
            place = index.behind(place + step)
            count += 1
        }
        return count
    }

    // MARK: Containers

    func keyed<Key: CodingKey>(_ type: Key.Type, at place: Int) throws -> KeyedDecodingContainer<Key> {
        guard entry(place).code == JSONEntry.Kind.object.rawValue else {
            throw noContainer("keyed", [String: Any].self, place)
        }
        if let entry = kept.free(for: type) {
            entry.pointee.frame.point(to: place, in: self)
            // The table stores it under the same type of keys.
            return copy(unsafeDowncast(entry.pointee.holder, to: ContainerHolder<KeyedDecodingContainer<Key>>.self))
        }
        return try newKeyed(type, at: place)
    }

    @inline(never)
    private func newKeyed<Key: CodingKey>(_ type: Key.Type, at place: Int) throws -> KeyedDecodingContainer<Key> {
        let frame = DecodingFrame(self, names(for: type))
        frame.point(to: place, in: self)
        let container = KeyedDecodingContainer(KeyedDecoding<Key>(frame: frame))
        // A frame outside the table must retain the core.
        if !kept.keep(container, for: type, frame) { frame.own() }
        return container
    }

    private func names(for type: Any.Type) -> KeyNames {
        let id = ObjectIdentifier(type)
        if let found = names[id] { return found }
        let made = KeyNames(plan.keys)
        names[id] = made
        return made
    }

    func unkeyed(at place: Int) throws -> any UnkeyedDecodingContainer {
        guard entry(place).code == JSONEntry.Kind.array.rawValue else {
            throw noContainer("unkeyed", [Any].self, place)
        }
        return UnkeyedDecoding(self, place)
    }

    private func noContainer(_ kind: String, _ type: Any.Type, _ place: Int) -> DecodingError {
        if entry(place).isNull {
            let type: Any.Type =
                kind == "keyed" ? KeyedDecodingContainer<JSONKey>.self : (any UnkeyedDecodingContainer).self
            return .valueNotFound(
                type,
                context(
                    place, "Cannot get \(kind) decoding container -- found null value instead",
                    "expected \(kind == "keyed" ? "an object" : "an array"), found null"))
        }
        return mismatch(type, place)
    }

    // MARK: Values

    /// Decodes a value of any type.
    @inline(__always)
    func value<T: Decodable>(_ type: T.Type, at place: Int) throws -> T {
        switch ways.way(of: type, plan) {
        case .own: return try T(from: ValueDecoding(core: self, place: place))
        case .direct(let direct):
            var storage: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
            return try withUnsafeMutableBytes(of: &storage) { buffer in
                // The callee initialises it unless it throws; the value is moved out, so it is neither leaked nor
                // initialised twice.
                guard let memory = buffer.baseAddress else { throw mismatch(type, place) }
                try direct.decode(into: memory, self, place)
                return memory.assumingMemoryBound(to: type).move()
            }
        }
    }

    func string(at place: Int) throws -> String {
        let entry = entry(place)
        guard entry.isText else { throw mismatch(String.self, place) }
        return index.string(entry)
    }

    func bool(at place: Int) throws -> Bool {
        switch entry(place).kind {
        case .yes: return true
        case .no: return false
        default: throw mismatch(Bool.self, place)
        }
    }

    @inline(__always)
    func integer<T: FixedWidthInteger & Decodable>(_ type: T.Type, at place: Int) throws -> T {
        let entry = entry(place)
        guard entry.isNumber else { throw mismatch(type, place) }
        guard let value = index.integer(entry, as: type) else { throw outOfRange(type, place) }
        return value
    }

    func double(at place: Int) throws -> Double {
        let entry = entry(place)
        if entry.isNumber {
            guard let value = index.double(entry) else { throw outOfRange(Double.self, place) }
            return value
        }
        if entry.isText, let value = plan.nonConforming(index.string(entry)) { return value }
        throw mismatch(Double.self, place)
    }

    func float(at place: Int) throws -> Float {
        let entry = entry(place)
        if entry.isNumber {
            guard let value = index.float(entry) else { throw outOfRange(Float.self, place) }
            return value
        }
        if entry.isText, let value = plan.nonConforming(index.string(entry)) { return Float(value) }
        throw mismatch(Float.self, place)
    }

    func decimal(at place: Int) throws -> Decimal {
        let entry = entry(place)
        guard entry.isNumber else { throw mismatch(Decimal.self, place) }
        guard let value = index.decimal(entry) else { throw outOfRange(Decimal.self, place) }
        return value
    }

    // MARK: Errors

    /// Returns the error for a value of another kind, or for a null.
    func mismatch(_ type: Any.Type, _ place: Int) -> DecodingError {
        let entry = entry(place)
        let reason = "expected \(type), found \(entry.kind.noun)"
        if entry.isNull {
            return .valueNotFound(
                type, context(place, "Cannot get value of type \(type) -- found null value instead", reason))
        }
        return .typeMismatch(
            type, context(place, "Expected to decode \(type) but found \(entry.kind.noun) instead.", reason))
    }

    func outOfRange(_ type: Any.Type, _ place: Int) -> DecodingError {
        let reason = "the number does not fit into \(type)"
        return .dataCorrupted(context(place, reason, reason, .range))
    }

    func corrupted(_ words: String, _ reason: String, _ place: Int) -> DecodingError {
        .dataCorrupted(context(place, words, reason))
    }

    /// - Parameters:
    ///   - words: The description; the one of Foundation's decoder, if that decoder has one.
    ///   - reason: The reason, which contains no values of the text.
    func context(
        _ place: Int, _ words: String, _ reason: String, _ kind: JSON.Fault.Kind = .value,
        path: [any CodingKey]? = nil
    ) -> DecodingError.Context {
        DecodingError.Context(
            codingPath: path ?? self.path(to: place), debugDescription: words,
            underlyingError: mark(place, reason, kind))
    }

    private func mark(_ place: Int, _ reason: String, _ kind: JSON.Fault.Kind) -> JSONMark {
        let entry = entry(place)
        // A string begins with its quotation mark.
        return JSONMark(reason: reason, kind: kind, offset: entry.offset - (entry.isText ? 1 : 0))
    }

    // MARK: Paths

    /// Records that the names of an object are the keys of a dictionary.
    func noteDictionary(_ object: Int) {
        if plan.converts { dictionaries.insert(object) }
    }

    private struct PathStep {
        let container: Int
        var child: Int
        var position: Int
    }

    /// Computes the path to a value by a walk from the root.
    ///
    /// The core keeps the steps of the last walk, because types that read the path of every element do so in order.
    func path(to place: Int) -> [any CodingKey] {
        if place >= DecodingCore.firstAbsent { return absentPaths[place - DecodingCore.firstAbsent] }
        var path: [any CodingKey] = []
        var (container, level) = (0, 0)
        while container != place {
            let isObject = index[container].code == JSONEntry.Kind.object.rawValue
            let offset = isObject ? 1 : 0
            var step = PathStep(container: container, child: container + 1 + offset, position: 0)
            if level < walk.count, walk[level].container == container, walk[level].child <= place { step = walk[level] }
            while index.behind(step.child) <= place {
                step.child = index.behind(step.child) + offset
                step.position += 1
            }
            if level < walk.count, walk[level].container == container, walk[level].child == step.child {
                // The last walk made the same step.
            } else {
                walk.replaceSubrange(min(level, walk.count)..., with: [step])
            }
            if isObject {
                let name = index.string(index[step.child - 1])
                let isKept = dictionaries.contains(container)
                path.append(JSONKey(stringValue: isKept ? name : plan.keys.converted(name, in: path)))
            } else {
                path.append(JSONKey(index: step.position))
            }
            container = step.child
            level += 1
        }
        return path
    }
}

extension JSONIndex {
    /// Passes the text to a closure.
    func withSpan<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        body(UnsafeBufferPointer(start: text, count: byteCount).span)
    }
}
