// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A pattern of URLs with `*`, `:name`, groups and modifiers, but without regular expressions (URL Pattern Standard,
/// and RFC 9842 §2.1.1, which forbids regular expressions).
///
/// Each component of the pattern is compiled to a small program, and a match takes time in proportion to the lengths of
/// program and text.
struct URLPattern: Hashable, Sendable {
    /// The components that the pattern restricts; all others match anything.
    private var scheme: Component?
    private var host: Component?
    private var port: Component?
    private var path: Component?
    private var query: Component?
    /// Whether the pattern demands a fragment, which no request has.
    private var demandsFragment = false

    /// The maximum length of a pattern in bytes, which bounds the time of a match.
    private static let maximumLength = 256

    /// Creates a pattern; nil for an invalid or too long one, and for one with a regular expression or user-info.
    ///
    /// - Parameters:
    ///   - text: The pattern: an absolute URL, an absolute path, or a reference relative to the base.
    ///   - base: The URL from which the pattern takes the components that it leaves out.
    init?(_ text: String, base: RequestTarget) {
        guard text.utf8.count <= Self.maximumLength, let tokens = Token.all(in: text) else { return nil }
        var rest = tokens[...]
        var isAbsolute = false
        if let end = Self.schemeEnd(in: tokens) {
            isAbsolute = true
            guard let scheme = Component(tokens[..<end], .scheme) else { return nil }
            self.scheme = scheme
            rest = tokens[(end + 3)...]
            let authority = Self.prefix(of: rest) { $0 == .byte(UInt8(ascii: "/")) || $0.startsQuery($1) || $0.isHash }
            rest = rest[authority.endIndex...]
            guard readAuthority(authority) else { return nil }
        }
        let path = Self.prefix(of: rest) { $0.startsQuery($1) || $0.isHash }
        rest = rest[path.endIndex...]
        let query = Self.prefix(of: rest) { token, _ in token.isHash }
        rest = rest[query.endIndex...]
        demandsFragment = !rest.dropFirst().allSatisfy { $0 == .asterisk }
        guard readPath(path, isAbsolute: isAbsolute, isLast: query.isEmpty && rest.isEmpty, base),
            readQuery(query, hasPath: isAbsolute || !path.isEmpty, isLast: rest.isEmpty, base)
        else { return nil }
    }

    /// Whether the pattern matches a URL.
    func matches(_ target: RequestTarget) -> Bool {
        let port = target.port == target.scheme.defaultPort ? "" : "\(target.port)"
        return !demandsFragment && (scheme?.matches(target.scheme.rawValue) ?? true)
            && (host?.matches(target.isIPv6 ? "[\(target.host)]" : target.host) ?? true)
            && (self.port?.matches(port) ?? true) && (path?.matches(target.path) ?? true)
            && (query?.matches(target.query ?? "") ?? true)
    }

    // MARK: Components

    /// Returns the position of the ":" of "://"; nil for a pattern without a scheme.
    private static func schemeEnd(in tokens: [Token]) -> Int? {
        let start = prefix(of: tokens[...]) { token, _ in token == .byte(UInt8(ascii: ":")) || token == .byte(0x2F) }
        let separator: [Token] = [.byte(UInt8(ascii: ":")), .byte(UInt8(ascii: "/")), .byte(UInt8(ascii: "/"))]
        return !start.isEmpty && tokens[start.endIndex...].starts(with: separator) ? start.endIndex : nil
    }

    /// Returns the tokens before the first one outside of groups that satisfies a condition.
    ///
    /// - Parameter isEnd: Receives a token and the one before it.
    private static func prefix(
        of tokens: ArraySlice<Token>, until isEnd: (Token, Token?) -> Bool
    ) -> ArraySlice<Token> {
        var depth = 0
        for (position, token) in zip(tokens.indices, tokens) {
            if token == .open { depth += 1 }
            if token == .close { depth -= 1 }
            if depth > 0 { continue }
            if isEnd(token, position > tokens.startIndex ? tokens[position - 1] : nil) { return tokens[..<position] }
        }
        return tokens
    }

    private mutating func readAuthority(_ tokens: ArraySlice<Token>) -> Bool {
        if tokens.contains(.byte(UInt8(ascii: "@"))) { return false }
        let bracket = tokens.lastIndex(of: .byte(UInt8(ascii: "]"))) ?? tokens.startIndex
        let colon = tokens[bracket...].lastIndex(of: .byte(UInt8(ascii: ":")))
        host = Component(tokens[..<(colon ?? tokens.endIndex)], .host)
        port = Component(colon.map { tokens[($0 + 1)...] } ?? [], .port)
        return host != nil && port != nil
    }

    /// - Parameter isLast: Whether neither a query nor a fragment follows.
    private mutating func readPath(
        _ tokens: ArraySlice<Token>, isAbsolute: Bool, isLast: Bool, _ base: RequestTarget
    ) -> Bool {
        if isAbsolute, tokens.isEmpty {
            // Without anything behind the host, any path matches.
            path = isLast ? nil : Component([.byte(UInt8(ascii: "/"))], .path)
            return true
        }
        path = Component(Self.resolved(tokens, base)[...], .path)
        return path != nil
    }

    /// Returns the tokens of a path with what a relative path takes from the base.
    private static func resolved(_ tokens: ArraySlice<Token>, _ base: RequestTarget) -> [Token] {
        let path = base.path.utf8.map { Token.literal($0) }
        if tokens.isEmpty { return path }
        let slash = UInt8(ascii: "/")
        let first = tokens.first == .open ? tokens.dropFirst().first : tokens.first
        if first == .byte(slash) || first == .literal(slash) { return Array(tokens) }
        return Array(path[...(path.lastIndex(of: .literal(slash)) ?? 0)]) + tokens
    }

    private mutating func readQuery(
        _ tokens: ArraySlice<Token>, hasPath: Bool, isLast: Bool, _ base: RequestTarget
    ) -> Bool {
        if !tokens.isEmpty {
            query = Component(tokens.dropFirst(), .query)
        } else if !isLast {
            query = Component([], .query)
        } else if !hasPath {
            query = Component((base.query ?? "").utf8.map { .literal($0) }[...], .query)
        } else {
            return true
        }
        return query != nil
    }
}

extension URLPattern {
    /// A token of a pattern.
    fileprivate enum Token: Hashable {
        case byte(UInt8)
        /// A byte behind a backslash, which has no meaning of its own.
        case literal(UInt8)
        case name(String)
        case asterisk
        case open
        case close
        /// "?" or "+".
        case modifier(UInt8)

        var isHash: Bool { self == .byte(UInt8(ascii: "#")) }

        /// Whether the token starts a query, and is not the modifier of the token before it.
        func startsQuery(_ previous: Token?) -> Bool {
            guard self == .modifier(UInt8(ascii: "?")) else { return self == .literal(UInt8(ascii: "?")) }
            switch previous {
            case .name, .asterisk, .close: return false
            default: return true
            }
        }

        /// Returns the tokens of a pattern; nil for one with a regular expression, or with a backslash at the end.
        static func all(in text: String) -> [Token]? {
            var (tokens, rest) = ([Token](), text.utf8[...])
            while let byte = rest.popFirst() {
                switch byte {
                case UInt8(ascii: "*"): tokens.append(.asterisk)
                case UInt8(ascii: "?"), UInt8(ascii: "+"): tokens.append(.modifier(byte))
                case UInt8(ascii: "{"): tokens.append(.open)
                case UInt8(ascii: "}"): tokens.append(.close)
                case UInt8(ascii: "("): return nil
                case UInt8(ascii: "\\"):
                    guard let escaped = rest.popFirst() else { return nil }
                    tokens.append(.literal(escaped))
                case UInt8(ascii: ":"):
                    let name = rest.prefix { nameBytes.contains($0) }
                    if let first = name.first, !ByteSet.digits.contains(first) {
                        tokens.append(.name(String(Substring(name))))
                        rest = rest[name.endIndex...]
                    } else {
                        tokens.append(.byte(byte))
                    }
                default: tokens.append(.byte(byte))
                }
            }
            return tokens
        }

        private static let nameBytes = ByteSet.letters.union(.digits).union(ByteSet("_$"))
    }

    /// The pattern of one component, as a program that runs over the bytes of a text.
    fileprivate struct Component: Hashable {
        enum Kind {
            case scheme, host, port, path, query

            /// The byte that a `:name` does not match.
            var delimiter: UInt8? {
                switch self {
                case .host: UInt8(ascii: ".")
                case .path: UInt8(ascii: "/")
                case .scheme, .port, .query: nil
                }
            }

            /// The byte that belongs to the `:name` or `*` behind it, and is optional or repeated with it.
            var prefix: UInt8? { self == .path ? UInt8(ascii: "/") : nil }
        }

        private enum Step: Hashable {
            case byte(UInt8)
            case any
            /// Any byte but the delimiter.
            case segment
            /// Continues at both positions.
            case fork(Int, Int)
        }

        private var steps: [Step] = []
        private let kind: Kind

        /// Compiles the tokens of a component; nil for invalid ones.
        init?(_ tokens: ArraySlice<Token>, _ kind: Kind) {
            self.kind = kind
            var (rest, names) = (tokens, Set<String>())
            while let token = rest.popFirst() {
                switch token {
                case .byte(let byte) where byte == kind.prefix && rest.first.map { Self.isVariable($0) } == true:
                    guard let variable = rest.popFirst(), Self.isNew(variable, &names) else { return nil }
                    add(prefix: [byte], variable, suffix: [], Self.modifier(&rest))
                case .byte(let byte), .literal(let byte):
                    let isPercent = byte == UInt8(ascii: "%")
                    add(literal: byte, isEscape: isPercent && Self.literals(rest).starts(withHexDigits: 2))
                case .name, .asterisk:
                    guard Self.isNew(token, &names) else { return nil }
                    add(prefix: [], token, suffix: [], Self.modifier(&rest))
                case .open:
                    let prefix = Self.literals(&rest)
                    var variable: Token?
                    if let first = rest.first, Self.isVariable(first) { variable = rest.popFirst() }
                    if let variable, !Self.isNew(variable, &names) { return nil }
                    let suffix = Self.literals(&rest)
                    guard rest.popFirst() == .close else { return nil }
                    add(prefix: prefix, variable, suffix: suffix, Self.modifier(&rest))
                case .close, .modifier: return nil
                }
            }
        }

        private static func isVariable(_ token: Token) -> Bool {
            if case .name = token { return true }
            return token == .asterisk
        }

        /// Whether no earlier variable has the same name.
        private static func isNew(_ token: Token, _ names: inout Set<String>) -> Bool {
            guard case .name(let name) = token else { return true }
            return names.insert(name).inserted
        }

        /// Takes the literal bytes at the start.
        private static func literals(_ tokens: inout ArraySlice<Token>) -> [UInt8] {
            let bytes = literals(tokens)
            tokens.removeFirst(bytes.count)
            return bytes
        }

        /// Returns the literal bytes at the start.
        private static func literals(_ tokens: ArraySlice<Token>) -> [UInt8] {
            var bytes: [UInt8] = []
            for token in tokens {
                switch token {
                case .byte(let byte), .literal(let byte): bytes.append(byte)
                default: return bytes
                }
            }
            return bytes
        }

        /// Takes the modifier behind a variable or a group: "?", "+" or "*".
        private static func modifier(_ tokens: inout ArraySlice<Token>) -> UInt8? {
            switch tokens.first {
            case .modifier(let byte)?:
                tokens.removeFirst()
                return byte
            case .asterisk?:
                tokens.removeFirst()
                return UInt8(ascii: "*")
            default: return nil
            }
        }

        private mutating func add(
            prefix: [UInt8], _ variable: Token?, suffix: [UInt8], _ modifier: UInt8?
        ) {
            let start = steps.count
            let isOptional = modifier == UInt8(ascii: "?") || modifier == UInt8(ascii: "*")
            let repeats = modifier == UInt8(ascii: "+") || modifier == UInt8(ascii: "*")
            if isOptional { steps.append(.fork(0, 0)) }
            let body = steps.count
            add(literals: prefix)
            switch variable {
            case .asterisk?:
                let loop = steps.count
                steps += [.fork(loop + 1, loop + 3), .any, .fork(loop, loop)]
            case .name?:
                let loop = steps.count
                steps += [.segment, .fork(loop, loop + 2)]
            default: break
            }
            add(literals: suffix)
            if repeats { steps.append(.fork(body, steps.count + 1)) }
            if isOptional { steps[start] = .fork(body, steps.count) }
        }

        private mutating func add(literals bytes: [UInt8]) {
            for (index, byte) in bytes.enumerated() {
                add(literal: byte, isEscape: Array(bytes[(index + 1)...]).starts(withHexDigits: 2))
            }
        }

        /// Adds a byte as it is written in a URL in normal form.
        ///
        /// - Parameter isEscape: Whether "%" begins an escape.
        private mutating func add(literal byte: UInt8, isEscape: Bool) {
            switch kind {
            case .scheme, .host: steps.append(.byte(byte.asciiLowercased))
            case .port: steps.append(.byte(byte))
            case .path, .query:
                if URLLayout.pathBytes.contains(byte) || isEscape && byte == UInt8(ascii: "%") {
                    return steps.append(.byte(byte))
                }
                steps += [.byte(UInt8(ascii: "%")), .byte((byte >> 4).hexDigit), .byte((byte & 15).hexDigit)]
            }
        }

        /// Whether the program matches the whole text.
        func matches(_ text: String) -> Bool {
            var (current, seen) = ([Int](), [Int](repeating: -1, count: steps.count + 1))
            enter(0, at: 0, &current, &seen)
            for (index, byte) in text.utf8.enumerated() {
                if current.isEmpty { return false }
                var following: [Int] = []
                for position in current where position < steps.count && accepts(steps[position], byte) {
                    enter(position + 1, at: index + 1, &following, &seen)
                }
                current = following
            }
            return current.contains(steps.count)
        }

        private func accepts(_ step: Step, _ byte: UInt8) -> Bool {
            switch step {
            case .byte(let wanted): byte == wanted
            case .any: true
            case .segment: byte != kind.delimiter
            case .fork: false
            }
        }

        /// Adds a position and those that its forks lead to, each once for an index of the text.
        private func enter(_ start: Int, at index: Int, _ positions: inout [Int], _ seen: inout [Int]) {
            var pending = [start]
            while let position = pending.popLast() {
                if seen[position] == index { continue }
                seen[position] = index
                if position < steps.count, case .fork(let first, let second) = steps[position] {
                    pending += [second, first]
                } else {
                    positions.append(position)
                }
            }
        }
    }
}

extension [UInt8] {
    fileprivate func starts(withHexDigits count: Int) -> Bool {
        self.count >= count && prefix(count).allSatisfy(ByteSet.hexDigits.contains)
    }
}
