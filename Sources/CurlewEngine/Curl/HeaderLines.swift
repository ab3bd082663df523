// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Curl: owners for libcurl's handles, its options with their units, its sockets in epoll. Only the loop thread touches
// these types, except HeaderLines and CurlVersion.

internal import CurlewShims
internal import Glibc

/// Request header lines in libcurl's list format; the caller builds the list, and any number of transfers share it
/// unchanged.
package final class HeaderLines: @unchecked Sendable {
    // Safe because the list never changes after init and libcurl only reads it.
    let list: UnsafeMutablePointer<curl_slist>?
    /// - Parameter fields: Names and values, already checked for CR, LF and NUL.
    package init(_ fields: [(name: String, value: String)], suppressing names: [String] = []) {
        let fields = fields.map { (name: $0.name, value: HeaderLines.trimmed($0.value)) }
        let accepts = fields.filter { strcasecmp($0.name, "accept") == 0 }
        let writesAccept = accepts.count == 1 && accepts[0].value == "*/*"
        // libcurl sends `Accept: */*` by itself; a shorter list saves comparisons with the dozen fields that libcurl
        // may add.
        var list: UnsafeMutablePointer<curl_slist>?
        // In libcurl's grammar, "Name: value" sends a field, "Name;" an empty field, and "Name:" stops libcurl from
        // adding one.
        for (name, value) in fields {
            if writesAccept && strcasecmp(name, "accept") == 0 { continue }
            list = curl_slist_append(list, value.isEmpty ? "\(name);" : "\(name): \(value)") ?? list
        }
        for name in names { list = curl_slist_append(list, "\(name):") ?? list }
        self.list = list
    }

    /// Creates a copy of `lines` without one field, which libcurl must not add either.
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

    /// Returns the value without the blanks around it, which are not part of the value (RFC 9110 §5.5).
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
