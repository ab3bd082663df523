// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How many bytes of bodies may pass in a second, each way; nil for as many as come.
///
/// A limit holds on average: bytes pass in pieces worth a twentieth of a second (512 bytes to 64 KiB), and what was not
/// used is made up for within a tenth. Heads are not counted. Whoever has to wait does not hold a thread, and no timeout
/// but `total` counts the wait: silence that a limit makes is not the server's.
///
/// What a server has sent before it notices lies in the buffers of the system, and of libcurl for a stream of HTTP/2: the
/// limit is one of what is taken from there.
///
/// ```swift
/// let session = Session { $0.limits.bandwidth = BandwidthLimit(download: .mebibytes(10)) }
/// let backup = api.transfer(.put, "backup", .file(path), options: .bandwidth(upload: .mebibytes(1)))
/// ```
public struct BandwidthLimit: Hashable, Sendable, Codable {
    /// Bytes of request bodies a second.
    public var upload: ByteCount?
    /// Bytes of response bodies a second, as they come: before they are decoded.
    public var download: ByteCount?

    /// A limit for each way, none unless given.
    public init(upload: ByteCount? = nil, download: ByteCount? = nil) {
        self.upload = upload
        self.download = download
    }

    /// Decodes bytes a second; what is missing is no limit.
    /// - Throws: `DecodingError.dataCorrupted` for what is not above zero.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        upload = try container.decodeIfPresent(ByteCount.self, forKey: .upload)
        download = try container.decodeIfPresent(ByteCount.self, forKey: .download)
        if let name = firstInvalid {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: container.codingPath, debugDescription: "A limit for \(name) must be above zero."))
        }
    }

    /// This limit, with `other`'s in the place of each way that it limits.
    func merging(_ other: BandwidthLimit?) -> BandwidthLimit {
        BandwidthLimit(upload: other?.upload ?? upload, download: other?.download ?? download)
    }

    private enum CodingKeys: CodingKey { case upload, download }

    /// The member that is not above zero, by name; nil when both are.
    var firstInvalid: String? {
        if let upload, upload < 1 { return "upload" }
        if let download, download < 1 { return "download" }
        return nil
    }
}
