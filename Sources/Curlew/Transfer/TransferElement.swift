// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An element of a transfer's stream.
///
/// The elements arrive in this order: progress while a body is sent, informational heads, the head, then progress and
/// bytes in turns, trailers, and a last progress before the end.
///
/// ```swift
/// for try await element in transfer.stream {
///     switch element {
///     case .informational(let hint): preload(hint.fields.values(for: "Link"))
///     case .trailers(let fields): print(fields["Server-Timing"] ?? "")
///     default: break
///     }
/// }
/// ```
public enum TransferElement: Sendable {
    /// A response before the final one, such as 103 Early Hints (RFC 9110 §15.2); a request may have several.
    ///
    /// 100 (Continue) is left out. When sixteen heads are unread, further ones are left out as well. More than 32 heads
    /// for one request end the request with `.invalidResponse`.
    case informational(ResponseHead)
    /// The response's status and fields; delivered once.
    case head(ResponseHead)
    /// The progress of the transfer; at most about twenty a second, and one at the end.
    ///
    /// If an interceptor has replaced or transformed the body, there is only the one at the end, which counts the bytes
    /// of the new body; `Transfer.progress` counts the received ones.
    case progress(TransferProgress)
    /// The next bytes of the body.
    case bytes(ByteChunk)
    /// The fields after the body (RFC 9110 §6.5), once and only if there are any; see ``Response/trailers``.
    case trailers(HeaderFields)
}
