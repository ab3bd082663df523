// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A URI reference (RFC 3986 §4.1), such as the value of `Location`, split into its components.
///
/// Any text has components: nothing is checked, decoded or encoded here. ``RequestTarget`` checks the resolved URL.
struct URLReference {
    /// The scheme without its ":"; nil for a relative reference.
    let scheme: ArraySlice<UInt8>?
    /// The text between "//" and the path, including user-info and port; nil without "//".
    let authority: ArraySlice<UInt8>?
    let path: ArraySlice<UInt8>
    /// The query without its "?"; nil when there is no "?".
    let query: ArraySlice<UInt8>?
    /// The fragment without its "#"; nil when there is no "#".
    let fragment: ArraySlice<UInt8>?

    init(_ text: String) {
        var rest = Array(text.utf8)[...]
        fragment = Self.cutTail(of: &rest, at: UInt8(ascii: "#"))
        query = Self.cutTail(of: &rest, at: UInt8(ascii: "?"))
        scheme = Self.cutScheme(of: &rest)
        if rest.starts(with: "//".utf8) {
            let start = rest.startIndex + 2
            let end = rest[start...].firstIndex(of: Self.slash) ?? rest.endIndex
            authority = rest[start..<end]
            path = rest[end...]
        } else {
            authority = nil
            path = rest
        }
    }

    /// Returns the query of a URL as it is written; "" without a query.
    static func query(of url: String) -> String {
        guard url.utf8.contains(UInt8(ascii: "?")) else { return "" }
        return URLReference(url).query.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Whether the authority has user-info, which may be empty.
    var hasUserInfo: Bool { authority?.contains(UInt8(ascii: "@")) == true }

    /// Resolves `reference` against `base` (RFC 3986 §5.2.2, strict) and keeps the fragment of the reference.
    ///
    /// Complexity: O(*n*) in the bytes of both.
    static func resolve(_ reference: String, against base: RequestTarget) -> String {
        URLReference(reference).resolved(against: base)
    }

    /// Resolves this reference against `base`; see ``resolve(_:against:)``.
    func resolved(against base: RequestTarget) -> String {
        if let scheme {
            return compose(scheme, authority, Self.withoutDotSegments(path)[...], query)
        }
        let base = URLReference(base.text)
        if authority != nil {
            return compose(base.scheme, authority, Self.withoutDotSegments(path)[...], query)
        }
        guard let first = path.first else {
            return compose(base.scheme, base.authority, base.path, query ?? base.query)
        }
        let whole = first == Self.slash ? path : base.folder + path
        return compose(base.scheme, base.authority, Self.withoutDotSegments(whole)[...], query)
    }

    /// The path up to and including its last "/" (RFC 3986 §5.2.3).
    private var folder: ArraySlice<UInt8> {
        path[...(path.lastIndex(of: Self.slash) ?? path.startIndex - 1)]
    }

    /// Returns the text of these components and this reference's fragment (RFC 3986 §5.3).
    private func compose(
        _ scheme: ArraySlice<UInt8>?, _ authority: ArraySlice<UInt8>?, _ path: ArraySlice<UInt8>,
        _ query: ArraySlice<UInt8>?
    ) -> String {
        var result: [UInt8] = []
        if let scheme { result += scheme + [UInt8(ascii: ":")] }
        if let authority {
            result += "//".utf8 + authority
        } else if path.starts(with: "//".utf8) {
            // Without the prefix, the leading "//" of the path would begin an authority.
            result += "/.".utf8
        }
        result += path
        if let query { result += [UInt8(ascii: "?")] + query }
        if let fragment { result += [UInt8(ascii: "#")] + fragment }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns the path without its "." and ".." segments (RFC 3986 §5.2.4).
    static func withoutDotSegments(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var input = path
        var output: [UInt8] = []
        output.reserveCapacity(path.count)
        while let first = input.first {
            let segment = first == slash ? input.dropFirst() : input
            let end = segment.firstIndex(of: slash) ?? segment.endIndex
            let name = segment[..<end]
            let isParent = name.elementsEqual("..".utf8)
            guard isParent || name.elementsEqual(".".utf8) else {
                output += input[..<end]
                input = input[end...]
                continue
            }
            if first != slash {
                input = input[end...].dropFirst()
                continue
            }
            if isParent { output.removeSubrange((output.lastIndex(of: slash) ?? 0)...) }
            if end == input.endIndex { output.append(slash) }
            input = input[end...]
        }
        return output
    }

    /// Returns the bytes after the first `mark`; `rest` keeps the bytes before it.
    private static func cutTail(of rest: inout ArraySlice<UInt8>, at mark: UInt8) -> ArraySlice<UInt8>? {
        guard let index = rest.firstIndex(of: mark) else { return nil }
        defer { rest = rest[..<index] }
        return rest[(index + 1)...]
    }

    /// Returns the scheme if `rest` begins with one and ":" (RFC 3986 §3.1); `rest` keeps the bytes after the ":".
    private static func cutScheme(of rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")), let first = rest.first,
            ByteSet.letters.contains(first), rest[..<colon].allSatisfy(schemeBytes.contains)
        else { return nil }
        defer { rest = rest[(colon + 1)...] }
        return rest[..<colon]
    }

    private static let slash = UInt8(ascii: "/")
    private static let schemeBytes = ByteSet.letters.union(.digits).union(ByteSet("+-."))
}
