// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension LoggingInterceptor {
    /// A log entry of a ``LoggingInterceptor``; its description is one line without secrets.
    public struct Entry: Sendable {
        /// The kind of event.
        public enum Event: String, Sendable, Hashable, CaseIterable {
            /// A request is about to be sent.
            case request
            /// The body of a request that is about to be sent.
            case requestBody
            /// The head of a response has arrived.
            case response
            /// The body of a response has been read to its end, has broken off (with an error), or was discarded.
            case responseBody
            /// The request failed without a response.
            case failure
        }

        /// The kind of event.
        public let event: Event
        /// The transfer of the event, as in ``Transfer/id``.
        public let transfer: UInt64
        /// The request's method.
        public let method: Method
        /// The request's URL, without user-info, and without the values of the query except those to be shown.
        public let url: String
        /// The response's status, if there is one.
        public internal(set) var status: Status?
        /// The fields of the request or response, secrets redacted; nil below the level `.fields`.
        public internal(set) var fields: HeaderFields?
        /// The size of the body in bytes: the declared size of a request or response, if known; for a body that was
        /// read, the number of decoded bytes received.
        public internal(set) var bodyBytes: Int64?
        /// The start of a body: text with controls escaped, or "hex" and digits; nil for other events.
        public internal(set) var body: String?
        /// The time from the request to the response, the failure or the end of the body.
        public internal(set) var duration: Duration?
        /// The reason for a missing response or for an incomplete body.
        public internal(set) var error: NetworkError?
    }
}

extension LoggingInterceptor.Entry: CustomStringConvertible {
    /// One line: "#7 ← 200 OK GET https://example.com/?q=<redacted> in 12 ms, 1.2 KiB".
    ///
    /// The line contains no control characters, so received data cannot imitate another log line.
    public var description: String {
        var line = "#\(transfer) \(mark) "
        if event == .response, let status { line += "\(status) " }
        line += "\(method) \(url)"
        if let duration { line += " in \(duration.brief)" }
        if let bodyBytes { line += ", \(ByteCount(bodyBytes))" }
        if let error { line += ", \(error.kind) while \(error.phase): \(error.message)" }
        if let fields { line += " {\(fields.map { "\($0.name): \($0.value)" }.joined(separator: "; "))}" }
        if let body { line += ": \(body)" }
        return line.escapingControls
    }

    private var mark: String {
        switch event {
        case .request: "→"
        case .requestBody: "→ body of"
        case .response: "←"
        case .responseBody: "← body of"
        case .failure: "×"
        }
    }
}

/// The first bytes of a body, copied while the body passes.
struct BodySample: Sendable {
    private let limit: Int
    private var kept: [UInt8] = []
    private(set) var count: Int64 = 0

    init(limit: ByteCount) { self.limit = Int(clamping: max(limit.bytes, 0)) }

    mutating func take(_ bytes: some Collection<UInt8>) {
        count += Int64(bytes.count)
        if kept.count < limit { kept += bytes.prefix(limit - kept.count) }
    }

    /// The kept bytes as text if they are UTF-8, otherwise as hexadecimal digits; "…" marks omitted bytes.
    var text: String {
        let isCut = count > Int64(kept.count)
        if let text = String(validating: isCut ? kept.dropLast(splitBytes) : kept[...], as: UTF8.self) {
            return text.escapingControls + (isCut ? "…" : "")
        }
        let digits = kept.prefix(Self.maximumHexBytes).map { byte in
            String(UnicodeScalar(Self.hex[Int(byte >> 4)])) + String(UnicodeScalar(Self.hex[Int(byte & 15)]))
        }
        return "hex " + digits.joined(separator: " ") + (count > Int64(Self.maximumHexBytes) || isCut ? " …" : "")
    }

    /// The number of bytes at the end that are an incomplete character.
    private var splitBytes: Int {
        for length in 1...3 where length <= kept.count {
            let byte = kept[kept.count - length]
            if 0xC2...0xF4 ~= byte { return length < (byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4) ? length : 0 }
            guard 0x80...0xBF ~= byte else { return 0 }
        }
        return 0
    }

    /// The number of bytes shown of a body that is not text.
    private static let maximumHexBytes = 32
    private static let hex = Array("0123456789abcdef".utf8)
}
