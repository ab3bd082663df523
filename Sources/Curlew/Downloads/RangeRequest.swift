// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A range request for the rest of a resource, which also interprets the response (RFC 9110 §14).
package struct RangeRequest: Sendable, Hashable {
    /// How many bytes are stored already; 0 requests the whole resource.
    package let offset: Int64
    /// The validator of the stored bytes.
    package let validator: ResumeToken.Validator?
    /// The size of the whole resource in bytes, if known.
    package let total: Int64?

    package init(offset: Int64, validator: ResumeToken.Validator?, total: Int64?) {
        (self.offset, self.validator, self.total) = (offset, validator, total)
    }

    package enum Interpretation: Sendable, Hashable {
        /// The response has the whole resource, from its first byte.
        case whole
        /// The response has the bytes from the offset through `last`, which may be before the end of the resource.
        case rest(last: Int64, total: Int64?)
        /// The stored bytes are already the whole resource.
        case complete
        /// The response does not fit the stored bytes, for the given reason; request the whole resource instead.
        case mismatch(String)
        /// The response is an error or has an unexpected status.
        case error
    }

    /// The fields for the request: `Range`, and `If-Range` so that a changed resource is sent whole (RFC 9110 §13.1.5).
    package var fields: [(HeaderName, String)] {
        guard offset > 0, let validator else { return [] }
        return [(.range, "bytes=\(offset)-"), (.ifRange, validator.field)]
    }

    /// Interprets a response.
    ///
    /// - Parameter isEncoded: Whether the body has a content coding, so that its bytes do not fit the stored ones.
    package func answer(_ head: ResponseHead, isEncoded: Bool) -> Interpretation {
        let isChanged = validator?.contradicts(head) == true
        switch head.status {
        case .partialContent where offset > 0:
            if isChanged { return .mismatch("the resource has changed") }
            if isEncoded { return .mismatch("the partial response has a content coding") }
            guard let range = head.contentRange, let bytes = range.bytes else {
                return .mismatch("Content-Range is missing or invalid")
            }
            guard bytes.lowerBound == offset else {
                return .mismatch("byte \(offset) was requested, but the response starts at byte \(bytes.lowerBound)")
            }
            if let total, let stated = range.total, stated != total {
                return .mismatch("the resource had \(total) bytes, and has \(stated) now")
            }
            if let total, bytes.upperBound >= total {
                return .mismatch("the part extends past the end of the resource")
            }
            if let length = head.contentLength, length != bytes.upperBound - offset + 1 {
                return .mismatch("Content-Range and Content-Length disagree about the length")
            }
            return .rest(last: bytes.upperBound, total: range.total ?? total)
        case .rangeNotSatisfiable where offset > 0:
            let stated = head.contentRange?.total
            if !isChanged, stated == offset, total == nil || total == offset { return .complete }
            return .mismatch("the resource has no byte \(offset)")
        case .partialContent, .rangeNotSatisfiable: return .error
        default: return head.status.isSuccess ? .whole : .error
        }
    }
}
