// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// A limit for the bytes of bodies that pass per second, for each direction; nil for no limit.
    ///
    /// A limit holds on average: bytes pass in chunks worth a twentieth of a second (512 bytes to 64 KiB), and
    /// unused time is credited up to a tenth of a second. Heads are not counted. A waiting transfer does not hold a
    /// thread, and only the timeout `total` counts the wait, because the limit causes the silence, not the server.
    ///
    /// The limit applies to the bytes read from the buffers of the system, and of libcurl for a stream of HTTP/2. These
    /// buffers hold the bytes that a server has sent before it notices the limit.
    ///
    /// ```swift
    /// let session = Session { $0.limits.bandwidth = Request.BandwidthLimit(download: .mebibytes(10)) }
    /// let backup = api.transfer(.put, "backup", .file(path), options: .bandwidth(upload: .mebibytes(1)))
    /// ```
    public struct BandwidthLimit: Hashable, Sendable, Codable {
        /// Bytes of request bodies per second.
        public var upload: ByteCount?
        /// Bytes of response bodies per second, as received, before they are decoded.
        public var download: ByteCount?

        /// Creates a limit for each direction; no limit unless given.
        public init(upload: ByteCount? = nil, download: ByteCount? = nil) {
            self.upload = upload
            self.download = download
        }

        /// Decodes bytes per second; a missing key means no limit.
        /// - Throws: `DecodingError.dataCorrupted` for a limit that is not above zero.
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

        /// Returns this limit, overridden by `other` for each direction that `other` limits.
        func merging(_ other: Request.BandwidthLimit?) -> Request.BandwidthLimit {
            Request.BandwidthLimit(upload: other?.upload ?? upload, download: other?.download ?? download)
        }

        private enum CodingKeys: CodingKey { case upload, download }

        /// The name of the member that is not above zero; nil when both are valid.
        var firstInvalid: String? {
            if let upload, upload < 1 { return "upload" }
            if let download, download < 1 { return "download" }
            return nil
        }
    }
}
