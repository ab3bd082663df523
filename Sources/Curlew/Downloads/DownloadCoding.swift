// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// Whether the request's `Accept-Encoding` is exactly `identity`.
    var wantsIdentity: Bool {
        fields[.acceptEncoding].map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() } == "identity"
    }
}

extension IncomingResponse {
    /// The error for a response with a content coding that the download did not accept.
    ///
    /// Decoding such a response could produce a file a thousand times as large as the server's.
    var unacceptedCoding: NetworkError {
        NetworkError(
            .unsupported, phase: .validating,
            "The server sent the file in a content coding, which the download did not request.",
            hint: "Set options.decompression to .off to keep the bytes as received, or Accept-Encoding to allow it.",
            request: request, response: head)
    }
}
