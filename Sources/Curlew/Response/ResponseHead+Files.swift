// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResponseHead {
    /// What the server says about saving the response; nil when it says nothing.
    public var contentDisposition: ContentDisposition? {
        self[.contentDisposition].flatMap { ContentDisposition($0) }
    }

    /// A name for a file with the response's body, safe to be put into a directory of one's own choice.
    ///
    /// What `Content-Disposition` says, else the last component of the URL's path, else "download".
    public var suggestedFilename: String {
        contentDisposition?.safeFilename ?? FileName.ofPath(of: url) ?? "download"
    }
}

extension ResponseHead {
    /// Which part of the whole the body is, where the response says so well-formed (RFC 9110 §14.4).
    public var contentRange: ContentRange? { self[.contentRange].flatMap { ContentRange($0) } }

    /// The digest of the whole, decoded or not, that the server states (RFC 9530 §3).
    var representationDigest: Checksum? { self["Repr-Digest"].flatMap { Checksum(digestField: $0) } }

    /// The digest of what this response carries (RFC 9530 §2).
    var contentDigest: Checksum? { self["Content-Digest"].flatMap { Checksum(digestField: $0) } }
}
