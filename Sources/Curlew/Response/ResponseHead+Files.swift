// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResponseHead {
    /// The value of `Content-Disposition`, which says how to save the response; nil when it is missing or invalid.
    public var contentDisposition: ResponseHead.ContentDisposition? {
        self[.contentDisposition].flatMap { ResponseHead.ContentDisposition($0) }
    }

    /// A file name for the response's body, safe for a new file in a directory that the caller chooses.
    ///
    /// The name is taken from `Content-Disposition`, else from the last component of the URL's path, else it is
    /// "download".
    public var suggestedFilename: String {
        contentDisposition?.safeFilename ?? FileName.ofPath(of: url) ?? "download"
    }
}

extension ResponseHead {
    /// The byte range of the body (RFC 9110 §14.4); nil when `Content-Range` is missing or invalid.
    public var contentRange: ResponseHead.ContentRange? {
        self[.contentRange].flatMap { ResponseHead.ContentRange($0) }
    }

    /// The digest of the whole representation, decoded or not, from `Repr-Digest` (RFC 9530 §3).
    var representationDigest: Checksum? { self["Repr-Digest"].flatMap { Checksum(digestField: $0) } }

    /// The digest of the content of this response, from `Content-Digest` (RFC 9530 §2).
    var contentDigest: Checksum? { self["Content-Digest"].flatMap { Checksum(digestField: $0) } }
}
