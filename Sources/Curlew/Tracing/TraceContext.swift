// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The position of a request in a distributed trace, in the format of W3C Trace Context (level 1), which uses two
/// fields.
///
/// Text is parsed strictly by https://www.w3.org/TR/trace-context/; invalid text yields no context.
///
/// ```swift
/// let incoming = TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
/// try await TraceContext.$current.withValue(incoming ?? .random()) {
///     try await handle(request)
/// }
/// ```
public struct TraceContext: Sendable, Hashable {
    /// The trace, 16 bytes that all its spans share.
    public let traceID: TraceID
    /// The span, 8 bytes; a receiver calls it the parent of its own span (`parent-id`, §3.2.2.4).
    public let spanID: SpanID
    /// Whether the caller may have recorded the trace (§3.2.2.5.1), the only flag that level 1 has.
    public let isSampled: Bool
    /// The state of tracing systems, the latest first (§3.3); opaque, at most 32 members with different keys.
    public let state: [StateMember]

    /// The context of the running code, inherited by its child tasks and tasks it creates; nil unless set.
    @TaskLocal public static var current: TraceContext?

    /// Creates a context from its parts.
    /// - Parameters:
    ///   - traceID: The trace.
    ///   - spanID: The span.
    ///   - isSampled: Whether the trace may be recorded.
    ///   - state: The members, the latest first; of members with the same key only the first is kept, and only the
    ///     first 32 members.
    public init(traceID: TraceID, spanID: SpanID, isSampled: Bool, state: [StateMember] = []) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
        var keys: Set<String> = []
        self.state = Array(state.filter { keys.insert($0.key).inserted }.prefix(Self.stateLimit))
    }

    /// Creates a new trace and its first span, from the system's random numbers.
    /// - Parameter isSampled: Whether the trace may be recorded.
    public static func random(isSampled: Bool = true) -> TraceContext {
        TraceContext(traceID: .random(), spanID: .random(), isSampled: isSampled)
    }

    /// Creates a new span of the same trace, with the same state.
    public func child() -> TraceContext {
        TraceContext(traceID: traceID, spanID: .random(), isSampled: isSampled, state: state)
    }

    static let stateLimit = 32
}

extension TraceContext {
    /// 16 bytes that are not all zero.
    public struct TraceID: Sendable, Hashable, CustomStringConvertible {
        private let high: UInt64
        private let low: UInt64

        /// Parses 32 lower-case hexadecimal digits that are not all zero; nil for any other text.
        public init?(_ text: some StringProtocol) {
            let digits = Array(text.utf8)
            guard digits.count == 32, let high = UInt64(strictHex: digits[..<16]),
                let low = UInt64(strictHex: digits[16...]), high | low != 0
            else { return nil }
            (self.high, self.low) = (high, low)
        }

        private init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

        /// Creates an identifier from the system's random numbers.
        public static func random() -> TraceID { TraceID(high: .random(in: 0 ... .max), low: .random(in: 1 ... .max)) }

        /// 32 lower-case hexadecimal digits.
        public var description: String { high.hexText + low.hexText }
    }

    /// 8 bytes that are not all zero.
    public struct SpanID: Sendable, Hashable, CustomStringConvertible {
        private let value: UInt64

        /// Parses 16 lower-case hexadecimal digits that are not all zero; nil for any other text.
        public init?(_ text: some StringProtocol) {
            guard text.utf8.count == 16, let value = UInt64(strictHex: text.utf8), value != 0 else { return nil }
            self.value = value
        }

        private init(value: UInt64) { self.value = value }

        /// Creates an identifier from the system's random numbers.
        public static func random() -> SpanID { SpanID(value: .random(in: 1 ... .max)) }

        /// 16 lower-case hexadecimal digits.
        public var description: String { value.hexText }
    }

    /// The state of one tracing system (§3.3.1.3).
    public struct StateMember: Sendable, Hashable, CustomStringConvertible {
        /// The name of the tracing system, such as "rojo" or "fw529a3039@dt".
        public let key: String
        /// The state, in the system's own format.
        public let value: String

        /// Creates a member from a key and a value; nil when they break the rules of §3.3.1.3.
        public init?(key: String, value: String) {
            guard Self.isKey(key), Self.isValue(value) else { return nil }
            self.key = key
            self.value = value
        }

        /// "key=value".
        public var description: String { "\(key)=\(value)" }

        private static func isKey(_ key: String) -> Bool {
            let parts = key.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
            guard parts.allSatisfy({ $0.allSatisfy(keyBytes.contains) }), let first = parts[0].first else {
                return false
            }
            if parts.count == 1 { return ByteSet.lowerCaseLetters.contains(first) && key.utf8.count <= 256 }
            guard parts.count == 2, let system = parts[1].first, ByteSet.lowerCaseLetters.contains(system) else {
                return false
            }
            let startsTenant = ByteSet.lowerCaseLetters.contains(first) || ByteSet.digits.contains(first)
            return startsTenant && parts[0].count <= 241 && parts[1].count <= 14
        }

        private static func isValue(_ value: String) -> Bool {
            let bytes = value.utf8
            guard 1...256 ~= bytes.count, bytes.last != UInt8(ascii: " ") else { return false }
            return bytes.allSatisfy { 0x20...0x7E ~= $0 && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
        }

        private static let keyBytes = ByteSet.lowerCaseLetters.union(.digits).union(ByteSet("_-*/"))
    }
}

extension TraceContext {
    /// Parses the context from the two fields of a message; nil when `traceparent` is invalid.
    ///
    /// Versions after 00 are parsed as far as they are known (§3.2.2, §4), without their additional flags. An invalid
    /// state is dropped as a whole, and the trace continues without it.
    /// - Parameters:
    ///   - traceparent: The value of the field, which must occur exactly once.
    ///   - tracestate: The values of the fields, joined by commas; nil without such a field.
    public init?(traceparent: String, tracestate: String? = nil) {
        let bytes = Array(traceparent.utf8)
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 55, bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            let version = UInt64(strictHex: bytes[..<2]), version != 0xFF,
            bytes.count == 55 || (version > 0 && bytes[55] == dash),
            let traceID = TraceID(String(decoding: bytes[3..<35], as: UTF8.self)),
            let spanID = SpanID(String(decoding: bytes[36..<52], as: UTF8.self)),
            let flags = UInt64(strictHex: bytes[53..<55])
        else { return nil }
        self.init(
            traceID: traceID, spanID: spanID, isSampled: flags & 1 == 1,
            state: tracestate.flatMap(Self.members) ?? [])
    }

    /// The value of the field `traceparent`, in version 00: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    /// The value of the field `tracestate`: "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"; nil when the state is empty.
    public var tracestate: String? { state.isEmpty ? nil : state.map(\.description).joined(separator: ",") }

    /// Parses the members of a list (§3.3.1); nil when a member is invalid or there are more than 32; empty members do
    /// not count.
    private static func members(_ text: String) -> [StateMember]? {
        var members: [StateMember] = []
        for part in text.utf8.split(separator: UInt8(ascii: ",")) {
            let rest = part.drop(while: \.isLinearSpace)
            guard let end = rest.lastIndex(where: { !$0.isLinearSpace }) else { continue }
            let member = rest[...end]
            guard members.count < stateLimit, let equals = member.firstIndex(of: UInt8(ascii: "=")),
                let known = StateMember(
                    key: String(Substring(member[..<equals])),
                    value: String(Substring(member[member.index(after: equals)...])))
            else { return nil }
            members.append(known)
        }
        return members
    }
}

extension TraceContext: CustomStringConvertible {
    /// The value of ``traceparent``.
    public var description: String { traceparent }
}

extension UInt64 {
    /// Parses at most 16 lower-case hexadecimal digits; nil for any other character.
    fileprivate init?(strictHex digits: some Sequence<UInt8>) {
        var value: UInt64 = 0
        for digit in digits {
            switch digit {
            case 0x30...0x39: value = value << 4 | UInt64(digit - 0x30)
            case 0x61...0x66: value = value << 4 | UInt64(digit - 0x61 + 10)
            default: return nil
            }
        }
        self = value
    }

    /// 16 lower-case hexadecimal digits.
    fileprivate var hexText: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
