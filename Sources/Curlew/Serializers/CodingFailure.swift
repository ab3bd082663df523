// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

// Errors for failed encodings and decodings. Messages name types and places but no values: a value may be secret, and
// messages are logged.

extension NetworkError {
    /// Returns the error for a body that could not be decoded.
    ///
    /// A `NetworkError` is kept and completed with the request, the response and the body; `CancellationError` becomes
    /// `cancelled`.
    static func decoding(
        _ error: any Error, as type: Any.Type?, of head: ResponseHead?, body: Data, request: Request
    ) -> NetworkError {
        switch error {
        case let error as NetworkError: error.completed(head, body, request)
        case is CancellationError:
            NetworkError(.cancelled, phase: .decoding, "The task was cancelled.", request: request, response: head)
        default: decoding(error, as: type).completed(head, body, request)
        }
    }

    /// Returns the error for bytes that could not be decoded, when no response is known.
    static func decoding(_ error: any Error, as type: Any.Type?) -> NetworkError {
        error as? NetworkError
            ?? undecodable(
                type, (error as? DecodingError)?.reason ?? ": " + typeName(Swift.type(of: error)), cause: error)
    }

    /// Returns the error for a body that could not be decoded, without request and response.
    ///
    /// - Parameter reason: The text after "Decoding User failed": a place, or a colon and the flaw.
    static func undecodable(_ type: Any.Type?, _ reason: String, hint: String? = nil, cause: any Error) -> NetworkError
    {
        let what = type.map { "Decoding \(typeName($0)) failed" } ?? "Decoding failed"
        return NetworkError(
            .decodingFailed, phase: .decoding, "\(what)\(reason).",
            hint: hint ?? textHint(type) ?? (cause as? DecodingError)?.hint, cause: cause)
    }

    /// Returns the error for an element of a request's body that could not be encoded.
    ///
    /// - Parameter place: The name of the element, such as "Element 7".
    static func encoding(_ error: any Error, at place: String) -> NetworkError {
        let failure = encoding(error)
        return NetworkError(
            failure.kind, phase: .preparing, "\(place): \(failure.message)", hint: failure.hint,
            cause: failure.cause ?? error)
    }

    /// Returns the error for a request's body that could not be encoded.
    static func encoding(_ error: any Error, request: Request? = nil) -> NetworkError {
        switch error {
        case let error as NetworkError: error.request == nil ? error.with(request: request) : error
        case is CancellationError:
            NetworkError(.cancelled, phase: .preparing, "The task was cancelled.", request: request)
        case EncodingError.invalidValue(let value, let context):
            NetworkError(
                .encodingFailed, phase: .preparing,
                "Encoding failed\(context.codingPath.place): \(reason(value, context))", cause: error, request: request)
        default:
            NetworkError(
                .encodingFailed, phase: .preparing, "Encoding failed: \(typeName(Swift.type(of: error))).",
                cause: error, request: request)
        }
    }

    /// Returns the error for an element of a stream that could not be decoded.
    ///
    /// - Parameters:
    ///   - place: The name of the element, such as "Line 7".
    ///   - bytes: The element.
    static func decoding(_ error: any Error, as type: Any.Type, at place: String, bytes: Data) -> NetworkError {
        let failure = decoding(error, as: type)
        return NetworkError(
            failure.kind, phase: .decoding, "\(place): \(failure.message)", hint: failure.hint,
            cause: failure.cause ?? error, body: Array(bytes.prefix(bodyLimit)))
    }

    /// Returns the error for an empty body where a value was expected.
    static func emptyBody(expecting type: Any.Type, of head: ResponseHead, request: Request) -> NetworkError {
        NetworkError(
            .decodingFailed, phase: .decoding, "The body is empty, where a \(typeName(type)) was expected.",
            hint: textHint(type)
                ?? "Decode `\(typeName(type))?` if the body may be empty, or ignore the body with `using: .empty`.",
            request: request, response: head)
    }

    private static func textHint(_ type: Any.Type?) -> String? {
        type == String.self ? "For the body itself as text: `using: .text`." : nil
    }

    /// Returns the reason why a value cannot be encoded.
    ///
    /// Curlew's own errors have a type as their value, and their text holds no values. The text of other errors may
    /// quote the value, so it is replaced.
    private static func reason(_ value: Any, _ context: EncodingError.Context) -> String {
        value is Any.Type
            ? context.debugDescription.shortened(to: 256).escapingControls
            : "the \(typeName(Swift.type(of: value))) cannot be encoded."
    }

    private static func typeName(_ type: Any.Type) -> String { String(describing: type) }

    private func completed(_ head: ResponseHead?, _ body: Data, _ request: Request) -> NetworkError {
        // An error with a request or another response belongs to another exchange, or is already complete.
        guard self.request == nil, response == nil || response == head else { return self }
        // The decoded bytes may be only a part of the body, which the error then has already.
        return with(
            request: request, response: head, body: self.body.isEmpty ? Array(body.prefix(Self.bodyLimit)) : self.body)
    }
}

extension DecodingError {
    /// The place and the reason of the failure, without values of the body.
    fileprivate var reason: String {
        switch self {
        case .typeMismatch(let type, let context):
            "\(context.place): expected \(type)" + (context.found.map { ", found \($0)" } ?? "")
        case .valueNotFound(let type, let context):
            "\(context.place): expected \(type), found " + (context.isAtEnd ? "the end of the array" : "null")
        case .keyNotFound(let key, let context): "\(context.place): nothing for the key “\(key.shown)”"
        case .dataCorrupted(let context):
            "\(context.place): \(context.fault?.reason ?? JSON.Fault.refusal)"
        @unknown default: ": \(title)"
        }
    }
}

extension DecodingError.Context {
    /// The place in the text, if Curlew's decoder threw the error.
    var fault: JSON.Fault? { underlyingError as? JSON.Fault }

    /// Whether an array had no more elements.
    fileprivate var isAtEnd: Bool { fault?.kind == .end }

    /// " at users[3].name (line 4, column 17)".
    fileprivate var place: String { codingPath.place + (fault.map { " (\($0.place))" } ?? "") }

    /// The kind of the value in the text, such as "a string"; nil for other descriptions, which may quote the body.
    fileprivate var found: String? {
        ["null", "bool", "a string", "number", "a dictionary", "an array", "an integer", "a real", "a string/data"]
            .first { debugDescription.hasSuffix(" but found \($0) instead.") }
    }
}

extension [any CodingKey] {
    /// " at users[3].name"; empty for the root, and the last 16 keys of a long path.
    fileprivate var place: String {
        if isEmpty { return "" }
        let shown = suffix(16).reduce(into: count > 16 ? "…" : "") { text, key in
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += (text.isEmpty ? "" : ".") + key.shown
            }
        }
        return " at " + shown
    }
}

extension CodingKey {
    /// The key, shortened and on one line: the keys of dictionaries come from the body.
    fileprivate var shown: String { stringValue.shortened(to: 64).escapingControls }
}

// The descriptions of these errors quote values of the body, so the title and the hint stand in for them.
extension DecodingError: DetailedCause {
    var title: String {
        switch self {
        case .typeMismatch: "DecodingError.typeMismatch"
        case .valueNotFound: "DecodingError.valueNotFound"
        case .keyNotFound: "DecodingError.keyNotFound"
        case .dataCorrupted: "DecodingError.dataCorrupted"
        @unknown default: "DecodingError"
        }
    }

    var hint: String? {
        switch self {
        case .valueNotFound(_, let context) where context.isAtEnd: nil
        case .keyNotFound, .valueNotFound: "Make the property Optional if the server may leave it out."
        case .dataCorrupted(let context) where context.fault?.kind == .range:
            "Numbers may have fractions or be larger than the property's type, as 1.5 is for Int."
        default: nil
        }
    }

    var details: [String] { [] }
}

extension EncodingError: DetailedCause {
    var title: String { "EncodingError.invalidValue" }
    var hint: String? { nil }
    var details: [String] { [] }
}
