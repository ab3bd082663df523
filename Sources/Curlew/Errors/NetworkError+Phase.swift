// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// When a request failed: a closed set, ordered as a request passes through it.
    ///
    /// Everything before ``sending`` means that the server has seen no byte of the request.
    public enum Phase: Hashable, Sendable, Comparable, CaseIterable {
        /// The request was checked and its body made.
        case preparing
        /// It waited for its turn under the session's limits.
        case queued
        /// The host's name was looked up.
        case resolving
        /// A connection to the host or the proxy was opened.
        case connecting
        /// The TLS handshake ran.
        case securing
        /// The request's head and body were written.
        case sending
        /// The request was written, and nothing had come back yet.
        case waiting
        /// The response was read.
        case receiving
        /// The response was judged.
        case validating
        /// The body was decompressed, or turned into a value.
        case decoding
        /// The body was put into a file.
        case saving
    }
}
