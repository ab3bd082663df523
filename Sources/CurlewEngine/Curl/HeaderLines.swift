// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Curl: libcurl's handles as owners, its options with their units, its sockets in epoll. Everything here but
// HeaderLines and CurlVersion is touched by the loop thread alone.

internal import CurlewShims
internal import Glibc

/// Request header lines in libcurl's own list, built by the caller and shared, unchanged, by any number of transfers.
package final class HeaderLines: @unchecked Sendable {
    // Safe because the list never changes after init and libcurl only reads it.
    let list: UnsafeMutablePointer<curl_slist>?
    /// - Parameter fields: Names and values, already checked for CR, LF and NUL.
    package init(_ fields: [(name: String, value: String)], suppressing names: [String] = []) {
        let fields = fields.map { (name: $0.name, value: HeaderLines.trimmed($0.value)) }
        let accepts = fields.filter { strcasecmp($0.name, "accept") == 0 }
        let writesAccept = accepts.count == 1 && accepts[0].value == "*/*"
        // libcurl writes that one by itself, and compares the name of each line with each of a dozen that it may add.
        var list: UnsafeMutablePointer<curl_slist>?
        // libcurl's grammar: "Name: value" sends, "Name;" sends an empty value, "Name:" keeps libcurl from adding one.
        for (name, value) in fields {
            if writesAccept && strcasecmp(name, "accept") == 0 { continue }
            list = curl_slist_append(list, value.isEmpty ? "\(name);" : "\(name): \(value)") ?? list
        }
        for name in names { list = curl_slist_append(list, "\(name):") ?? list }
        self.list = list
    }

    /// The same lines but for those of one field, which libcurl is kept from adding.
    init(_ lines: HeaderLines, without name: String) {
        var list: UnsafeMutablePointer<curl_slist>?
        var next = lines.list
        while let line = next {
            next = line.pointee.next
            guard let text = line.pointee.data, strncasecmp(text, name, name.utf8.count) != 0 else { continue }
            list = curl_slist_append(list, text) ?? list
        }
        self.list = curl_slist_append(list, "\(name):") ?? list
    }

    /// A value without the blanks around it, which are no part of it (RFC 9110 §5.5).
    private static func trimmed(_ value: String) -> String {
        let bytes = value.utf8
        guard let first = bytes.first, let last = bytes.last, isBlank(first) || isBlank(last) else { return value }
        var rest = Substring(value).utf8
        while let byte = rest.first, isBlank(byte) { rest.removeFirst() }
        while let byte = rest.last, isBlank(byte) { rest.removeLast() }
        return String(rest) ?? value
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    deinit { curl_slist_free_all(list) }
}
