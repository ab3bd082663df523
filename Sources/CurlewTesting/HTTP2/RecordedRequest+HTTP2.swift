// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension RecordedRequest {
    /// Creates a request from its block of fields and reports invalid fields (RFC 9113 §8.2 and §8.3.1).
    init(
        http2 fields: [HPACK.Field], stream: Int, connection: Int, ordinal: Int, tls: TLS?,
        violation: (String) -> Void
    ) throws {
        let pseudo = fields.prefix { $0.name.hasPrefix(":") }
        let regular = fields.dropFirst(pseudo.count)
        func value(_ name: String) -> String? {
            let values = pseudo.filter { $0.name == name }.map(\.value)
            if values.count > 1 { violation("There are \(values.count) \(name) fields.") }
            return values.first
        }
        let method = value(":method") ?? ""
        let target = value(":path") ?? ""
        let mark = target.firstIndex(of: "?")
        self.init(
            method: method, target: target, path: mark.map { String(target[..<$0]) } ?? target,
            query: mark.map { String(target[target.index(after: $0)...]) }, version: "HTTP/2", fields: Array(regular),
            connection: connection, ordinal: ordinal, tls: tls)
        self.stream = stream
        scheme = value(":scheme")
        authority = value(":authority")
        if method.isEmpty { violation("A request has no :method.") }
        if method != "CONNECT", target.isEmpty || scheme == nil { violation("A request has no :path or :scheme.") }
        for field in regular {
            if let reason = Self.fault(of: field) { violation(reason) }
        }
    }

    private static func fault(of field: HPACK.Field) -> String? {
        let name = field.name
        if name.isEmpty || name.hasPrefix(":") { return "The field \(name) follows the pseudo-header fields." }
        if name.utf8.contains(where: { (65...90).contains($0) || $0 <= 32 }) {
            return "The field name \(name) is not lower-case."
        }
        let connectionFields = ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"]
        if connectionFields.contains(name) || (name == "te" && field.value != "trailers") {
            return "The field \(name) is only valid in HTTP/1.1."
        }
        return nil
    }
}
