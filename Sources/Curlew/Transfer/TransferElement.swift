// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a transfer's stream yields, in this order: progress while a body is sent, the head, then progress and bytes in
/// turns, and a last progress before the end.
public enum TransferElement: Sendable {
    /// The response's status and fields, once.
    case head(ResponseHead)
    /// How far the transfer is; at most about twenty a second, and one at the end.
    case progress(TransferProgress)
    /// The next bytes of the body.
    case bytes(ByteChunk)
}
