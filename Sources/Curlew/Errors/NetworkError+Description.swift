// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError: CustomStringConvertible {
    /// One line: kind, phase, message, and in parentheses the request, status, attempts and libcurl's code.
    ///
    /// User-info, query values and sensitive fields are left out; control characters are escaped.
    public var description: String {
        var facts: [String] = []
        if let request { facts.append(request.description) }
        if let response { facts.append("status \(response.status.code)") }
        if attempts > 1 { facts.append("\(attempts) attempts") }
        if let engineCode { facts.append("libcurl code \(engineCode)") }
        let suffix = facts.isEmpty ? "" : " (\(facts.joined(separator: "; ")))"
        return "\(kind) while \(phase): \(message)".escapingControls + suffix
    }

    /// A tree of all facts, one line per fact, with the same redaction as ``description``.
    ///
    /// Only the size of the body is shown. Causes that are not a `NetworkError` are shown by their own descriptions.
    public var detailedDescription: String {
        ([code] + Self.branches(branches)).joined(separator: "\n")
    }

    /// A fact and the lines below it.
    private struct Branch {
        var line: String
        var children: [String] = []
    }

    private var branches: [Branch] {
        var result = [Branch(line: "what: \(message)")]
        if let hint { result.append(Branch(line: "try: \(hint)")) }
        result.append(Branch(line: "retry: \(retriability.text), \(retriabilityReason)"))
        if let request {
            result.append(Branch(line: "request: \(request)", children: request.fields.map(\.description)))
        }
        if let response {
            let line = "response: \(response.version) \(response.status)"
            result.append(Branch(line: line, children: response.fields.map(\.description)))
        }
        if !body.isEmpty { result.append(Branch(line: "body: the first \(body.count) bytes are kept")) }
        let time = duration.map { " in \($0.brief)" } ?? ""
        result.append(
            Branch(line: "attempts: \(attempts)\(time)", children: earlier.map { "\($0.code): \($0.message)" }))
        if let engineCode { result.append(Branch(line: "libcurl code: \(engineCode)")) }
        if let inner = cause as? NetworkError {
            result.append(Branch(line: "cause: \(inner.code)", children: inner.branches.map(\.line)))
        } else if let cause {
            let detailed = cause as? any DetailedCause
            result.append(Branch(line: "cause: \(detailed?.title ?? "\(cause)")", children: detailed?.details ?? []))
        }
        return result
    }

    private static func branches(_ branches: [Branch]) -> [String] {
        branches.enumerated().flatMap { index, branch in
            let isLast = index == branches.count - 1
            let children = branch.children.enumerated().map { position, child in
                let mark = position == branch.children.count - 1 ? "└─ " : "├─ "
                return (isLast ? "   " : "│  ") + mark + child.escapingControls
            }
            return [(isLast ? "└─ " : "├─ ") + branch.line.escapingControls] + children
        }
    }
}

extension NetworkError.Retriability {
    fileprivate var text: String {
        switch self {
        case .never: "never"
        case .ifIdempotent: "only if the request is idempotent"
        case .safe(nil): "safe"
        case .safe(let after?): "safe after \(after.brief)"
        }
    }
}

/// A cause with details of several lines, without secrets.
protocol DetailedCause: Error {
    /// The short name of the cause, whose details are in the error's message.
    var title: String { get }
    var hint: String? { get }
    var details: [String] { get }
}
