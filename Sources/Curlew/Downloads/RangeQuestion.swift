// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Asks for the rest of something of which a part is there, and judges what comes (RFC 9110 §14).
struct RangeQuestion: Sendable, Hashable {
    /// How many bytes are there; 0 asks for the whole.
    let offset: Int64
    /// Which state of the resource they are of.
    let validator: EntityValidator?
    /// How many bytes the whole has, as far as it is known.
    let total: Int64?

    enum Answer: Sendable, Hashable {
        /// The whole, from its first byte on.
        case whole
        /// The bytes from the offset on, through the last one that comes; that may be before the end of the whole.
        case rest(last: Int64, total: Int64?)
        /// There are no more bytes than those that are there.
        case complete
        /// Nothing that fits, for a reason: ask for the whole.
        case unfit(String)
        /// No answer to the question: a refusal.
        case refusal
    }

    /// The request's fields: the range, which a server sends only while the state is the same (RFC 9110 §13.1.5).
    var fields: [(HeaderName, String)] {
        guard offset > 0, let validator else { return [] }
        return [(.range, "bytes=\(offset)-"), (.ifRange, validator.field)]
    }

    /// What a response means.
    ///
    /// - Parameter isEncoded: Whether its body has a content coding, so that its bytes are not those of the whole.
    func answer(_ head: ResponseHead, isEncoded: Bool) -> Answer {
        let isChanged = validator?.contradicts(head) == true
        switch head.status {
        case .partialContent where offset > 0:
            if isChanged { return .unfit("the part is of another state of the resource") }
            if isEncoded { return .unfit("the part has a content coding") }
            guard let range = head.contentRange, let bytes = range.bytes else {
                return .unfit("Content-Range is missing, or makes no sense")
            }
            guard bytes.lowerBound == offset else {
                return .unfit("bytes from \(offset) on were asked for, and those from \(bytes.lowerBound) on came")
            }
            if let total, let stated = range.total, stated != total {
                return .unfit("the whole had \(total) bytes, and has \(stated) now")
            }
            if let total, bytes.upperBound >= total { return .unfit("the part reaches beyond the whole") }
            if let length = head.contentLength, length != bytes.upperBound - offset + 1 {
                return .unfit("Content-Range and Content-Length say different lengths")
            }
            return .rest(last: bytes.upperBound, total: range.total ?? total)
        case .rangeNotSatisfiable where offset > 0:
            let stated = head.contentRange?.total
            if !isChanged, stated == offset, total == nil || total == offset { return .complete }
            return .unfit("there are no bytes from \(offset) on")
        case .partialContent, .rangeNotSatisfiable: return .refusal
        default: return head.status.isSuccess ? .whole : .refusal
        }
    }
}
