// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Certificate {
    /// A certificate revocation list (RFC 5280 §5): the certificates that an authority has revoked.
    public struct RevocationList: Sendable {
        let list: X509RevocationList
        /// The digest of the list, which makes comparison cheap: every request with such an evaluator compares lists.
        private let digest: [UInt8]

        /// Reads one list in DER.
        ///
        /// - Throws: `TrustFailure.InvalidPolicy` when the bytes are not one list.
        public init(der: [UInt8]) throws(TrustFailure.InvalidPolicy) {
            self = try Certificate.RevocationList.one(of: der)
        }

        /// Reads the one list of a PEM text.
        ///
        /// - Throws: `TrustFailure.InvalidPolicy` when the text has no list, several lists, or an unreadable one.
        public init(pem: String) throws(TrustFailure.InvalidPolicy) {
            self = try Certificate.RevocationList.one(of: Array(pem.utf8))
        }

        /// Reads every list of a file, PEM or DER, on the calling thread.
        ///
        /// - Throws: `TrustFailure.InvalidPolicy` with the path, when the file cannot be read or has no list.
        public static func all(file path: String) throws(TrustFailure.InvalidPolicy) -> [Certificate.RevocationList] {
            let bytes = try TrustFile.bytes(of: path)
            return try TrustFailure.InvalidPolicy.about(file: path) { () throws(TrustFailure.InvalidPolicy) in
                try all(in: bytes)
            }
        }

        private init(_ list: X509RevocationList) {
            self.list = list
            digest = sha256(list.der)
        }

        private static func one(of bytes: [UInt8]) throws(TrustFailure.InvalidPolicy) -> Certificate.RevocationList {
            let lists = try all(in: bytes)
            guard lists.count == 1 else {
                throw TrustFailure.InvalidPolicy("The input has \(lists.count) certificate revocation lists, not one.")
            }
            return lists[0]
        }

        private static func all(in bytes: [UInt8]) throws(TrustFailure.InvalidPolicy) -> [Certificate.RevocationList] {
            switch X509RevocationList.read(bytes) {
            case .success(let lists) where !lists.isEmpty: return lists.map { Certificate.RevocationList($0) }
            case .success: throw TrustFailure.InvalidPolicy("The input has no certificate revocation list.")
            case .failure(let failure):
                throw TrustFailure.InvalidPolicy("A certificate revocation list cannot be read: \(failure.reason).")
            }
        }

        /// The issuer of the list, in the notation of RFC 4514.
        public var issuer: String { list.issuer }
        /// The list in DER.
        public var der: [UInt8] { list.der }
    }
}

extension Certificate.RevocationList: Hashable {
    /// Whether the bytes of both lists are equal.
    public static func == (one: Certificate.RevocationList, other: Certificate.RevocationList) -> Bool {
        one.digest == other.digest
    }

    /// Hashes a digest of the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}
