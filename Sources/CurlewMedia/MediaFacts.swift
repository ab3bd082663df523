// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The facts about a file that a response states.
struct MediaFacts: Sendable, Hashable, Codable {
    /// The length in bytes; nil while it is unknown.
    var length: Int64?
    /// The `Content-Type` field.
    var contentType: String?
    /// The strong validator; nil without one.
    var validator: ResumeToken.Validator?

    init(length: Int64?, contentType: String?, validator: ResumeToken.Validator?) {
        (self.length, self.contentType, self.validator) = (length, contentType, validator)
    }

    /// Creates the facts of a response that has the whole file.
    init(whole head: ResponseHead) {
        self.init(
            length: head.contentLength, contentType: head.contentType, validator: ResumeToken.Validator(head))
    }

    /// Returns whether a response with the whole file has the same bytes as the file of these facts.
    func matches(_ other: MediaFacts) -> Bool {
        guard let validator, validator == other.validator else { return false }
        guard let length, let otherLength = other.length else { return true }
        return length == otherLength
    }
}

/// The meaning of a response to a request for the bytes of a file.
enum MediaAnswer: Sendable, Hashable {
    /// The response has the requested bytes up to a position (RFC 9110 §15.3.7).
    case part(to: Int64, total: Int64?)
    /// The response has a whole file: the same one, or another one (RFC 9110 §13.1.5).
    case whole(MediaFacts, canRange: Bool)
    /// The file, of which the length was unknown, ends at or before the first requested byte.
    case length(Int64)
    /// Another file has replaced the stored one.
    case changed(String)
    /// The response cannot be used, although the file may be the same.
    case unusable(String)
    /// The status is an error.
    case refused
    /// The body has a content coding, although none was accepted.
    case encoded

    /// A request for bytes.
    struct Question: Sendable, Hashable {
        var from: Int64 = 0
        var to: Int64?
        /// The facts of the stored file; nil without one.
        var facts: MediaFacts?
        /// Whether ranges of the file can be requested.
        var canRange = false

        /// The fields of the request: `Range`, and `If-Range` so that a changed file is sent whole (RFC 9110 §13.1.5).
        var fields: [(HeaderName, String)] {
            guard isPartial, let validator = facts?.validator else { return [] }
            return [(.range, "bytes=\(from)-\(to.map { "\($0 - 1)" } ?? "")"), (.ifRange, validator.field)]
        }

        var isPartial: Bool { canRange && facts?.validator != nil && (from > 0 || to != nil) }
    }

    /// Interprets a response.
    init(_ head: ResponseHead, to question: Question) {
        let isEncoded = head[.contentEncoding].map { $0.lowercased() != "identity" } ?? false
        let isOther = question.facts?.validator?.contradicts(head) ?? false
        switch head.status {
        case .partialContent:
            self = isOther ? .changed("its validator differs") : Self.part(head, question, isEncoded: isEncoded)
        case .rangeNotSatisfiable:
            let total = head.contentRange?.total
            if !question.isPartial {
                self = .refused
            } else if isOther {
                self = .changed("its validator differs")
            } else if let length = question.facts?.length {
                self = total == length ? .unusable("a 416 for bytes inside of the file") : .changed("it is shorter")
            } else if let total, total <= question.from {
                self = .length(total)
            } else {
                self = .unusable("a 416 without the length of the file")
            }
        case .preconditionFailed: self = question.isPartial ? .changed("a precondition failed") : .refused
        default:
            guard head.status.isSuccess else {
                self = .refused
                return
            }
            if isEncoded {
                self = .encoded
                return
            }
            let facts = MediaFacts(whole: head)
            let isRefusing = head["Accept-Ranges"].map { $0.lowercased() == "none" } ?? false
            self = .whole(facts, canRange: facts.validator != nil && !isRefusing)
        }
    }

    private static func part(_ head: ResponseHead, _ question: Question, isEncoded: Bool) -> MediaAnswer {
        guard question.isPartial else { return .unusable("a part, although the whole was requested") }
        if isEncoded { return .unusable("a part with a content coding") }
        guard let range = head.contentRange, let bytes = range.bytes else {
            return .unusable("a part without a valid Content-Range")
        }
        if let total = range.total, let length = question.facts?.length, total != length {
            return .changed("it had \(length) bytes, and has \(total) now")
        }
        guard bytes.lowerBound == question.from else { return .unusable("another part than the requested one") }
        let end = bytes.upperBound + 1
        if let length = question.facts?.length, end > length { return .unusable("a part beyond the end of the file") }
        if let length = head.contentLength, length != end - question.from {
            return .unusable("a part whose Content-Length disagrees with Content-Range")
        }
        return .part(to: end, total: range.total)
    }
}
