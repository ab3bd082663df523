// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// The phase in which a request failed: a closed set, in the order in which a request passes through the phases.
    ///
    /// In every phase before ``sending``, the server has received no byte of the request.
    public enum Phase: Hashable, Sendable, Comparable, CaseIterable {
        /// The request was checked, and its body was created.
        case preparing
        /// The request waited in the queue under the session's limits.
        case queued
        /// The host's name was looked up.
        case resolving
        /// A connection to the host or the proxy was opened.
        case connecting
        /// The TLS handshake ran.
        case securing
        /// The request's head and body were written.
        case sending
        /// The request was written, and no byte of the response had arrived yet.
        case waiting
        /// The response was read.
        case receiving
        /// The response was validated.
        case validating
        /// The body was decompressed, or decoded as a value.
        case decoding
        /// The body was saved in a file.
        case saving
    }
}
