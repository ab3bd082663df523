// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// Whether it asks for the bytes as they are, and nothing else.
    var wantsIdentity: Bool {
        fields[.acceptEncoding].map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() } == "identity"
    }
}

extension IncomingResponse {
    /// A file would be what a coding makes of it, which may be a thousand times as large as what the server holds.
    var unaskedCoding: NetworkError {
        NetworkError(
            .unsupported, phase: .validating,
            "The server sent the file in a content coding, which the download did not ask for.",
            hint: "Set options.decompression to .off to keep the bytes as they come, or Accept-Encoding to allow it.",
            request: request, response: head)
    }
}
