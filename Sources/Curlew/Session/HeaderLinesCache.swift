// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A cache of the header lines that a session built last, since the requests of one client mostly have the same lines.
///
/// Names are sent as spelled, so spelling matters. Swift strings of different bytes can be equal, but no two ASCII
/// strings of the same length are; so only ASCII lines are kept, and lengths are compared.
struct HeaderLinesCache {
    /// The input for header lines, besides the session's own fields.
    struct HeaderLinesInput {
        var fields: HeaderFields
        let withheld: [HeaderName]
        let contentEncoding: String?
        let decodes: Bool
        let sends: Bool
        let expects: Bool

        fileprivate var isASCII: Bool {
            fields.allSatisfy { Self.isASCII($0.name.rawValue) && Self.isASCII($0.value) }
        }

        private static func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

        fileprivate func isSame(as other: HeaderLinesInput) -> Bool {
            guard decodes == other.decodes, sends == other.sends, expects == other.expects,
                contentEncoding == other.contentEncoding, fields.count == other.fields.count,
                withheld == other.withheld
            else { return false }
            return zip(fields, other.fields).allSatisfy { one, other in
                Self.isSame(one.value, other.value) && Self.isSame(one.name.rawValue, other.name.rawValue)
            }
        }

        private static func isSame(_ text: String, _ ascii: String) -> Bool {
            text.utf8.count == ascii.utf8.count && text == ascii
        }
    }

    private static let size = 4
    private var entries: [(wish: HeaderLinesInput, lines: HeaderLines)] = []
    private var oldest = 0

    subscript(wish: HeaderLinesInput) -> HeaderLines? { entries.first { wish.isSame(as: $0.wish) }?.lines }

    mutating func keep(_ lines: HeaderLines, for wish: HeaderLinesInput) {
        guard wish.isASCII else { return }
        if entries.count < Self.size { return entries.append((wish, lines)) }
        entries[oldest] = (wish, lines)
        oldest = (oldest + 1) % Self.size
    }
}
