// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension Certificate {
    /// Reads every certificate of a PEM text, or one certificate in DER.
    ///
    /// - Parameter bytes: PEM with at least one certificate, or DER.
    /// - Returns: The certificates in the order of the text.
    /// - Throws: `TrustFailure.InvalidPolicy` when the bytes have no certificate, or a certificate cannot be read.
    public static func all(in bytes: [UInt8]) throws(TrustFailure.InvalidPolicy) -> [Certificate] {
        switch X509Certificate.read(bytes) {
        case .success(let all) where !all.isEmpty: return all.map { Certificate($0) }
        case .success: throw TrustFailure.InvalidPolicy("The input has no certificate.", hint: "Give PEM or DER.")
        case .failure(let failure):
            throw TrustFailure.InvalidPolicy(
                "A certificate cannot be read: \(failure.reason).", hint: "Give PEM or DER.")
        }
    }

    /// Reads every certificate of a PEM text.
    ///
    /// - Throws: `TrustFailure.InvalidPolicy` when the text has no certificate, or a certificate cannot be read.
    public static func all(pem: String) throws(TrustFailure.InvalidPolicy) -> [Certificate] {
        try all(in: Array(pem.utf8))
    }

    /// Reads every certificate of a file, on the calling thread.
    ///
    /// - Parameter path: A file with PEM or DER.
    /// - Throws: `TrustFailure.InvalidPolicy` with the path, when the file cannot be read or has no certificate.
    public static func all(file path: String) throws(TrustFailure.InvalidPolicy) -> [Certificate] {
        let bytes = try TrustFile.bytes(of: path)
        return try TrustFailure.InvalidPolicy.about(file: path) { () throws(TrustFailure.InvalidPolicy) in
            try all(in: bytes)
        }
    }

    /// Reads the certificates of every `.cer`, `.crt`, `.der` and `.pem` file of a directory, on the calling thread.
    ///
    /// The files are read in the order of their names. Subdirectories are not searched.
    /// - Throws: `TrustFailure.InvalidPolicy` when the directory has no such file, or one cannot be read.
    public static func all(directory path: String) throws(TrustFailure.InvalidPolicy) -> [Certificate] {
        let names: [String]
        if DiskFile.hasNUL(path) {
            throw TrustFailure.InvalidPolicy(
                "The directory \(path.escapingControls) cannot be read: its path contains a NUL.")
        }
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw TrustFailure.InvalidPolicy("The directory \(path.escapingControls) cannot be read: \(error).")
        }
        var certificates: [Certificate] = []
        for name in names.sorted() where endings.contains(where: { name.lowercased().hasSuffix($0) }) {
            certificates += try all(file: "\(path)/\(name)")
        }
        guard !certificates.isEmpty else {
            throw TrustFailure.InvalidPolicy(
                "The directory \(path.escapingControls) has no certificate file.",
                hint: "Certificate files end in .cer, .crt, .der or .pem.")
        }
        return certificates
    }

    private static let endings = [".cer", ".crt", ".der", ".pem"]
}

/// Reads files with certificates, keys and revocation lists.
enum TrustFile {
    /// The largest accepted file size in bytes; a larger file cannot hold certificates or keys.
    private static let most = 64 << 20

    static func bytes(of path: String) throws(TrustFailure.InvalidPolicy) -> [UInt8] {
        let data: Data
        if DiskFile.hasNUL(path) { throw unreadable(path, "its path contains a NUL") }
        do {
            data = try Data(contentsOf: URL(filePath: path))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            throw unreadable(path, "there is no such file")
        } catch let error as CocoaError where error.code == .fileReadNoPermission {
            throw unreadable(path, "permission is denied")
        } catch {
            throw unreadable(path, "it cannot be opened")
        }
        guard data.count <= most else { throw unreadable(path, "it is larger than 64 MiB") }
        return Array(data)
    }

    private static func unreadable(_ path: String, _ reason: String) -> TrustFailure.InvalidPolicy {
        TrustFailure.InvalidPolicy("The file \(path.escapingControls) cannot be read: \(reason).")
    }
}

extension TrustFailure.InvalidPolicy {
    /// Adds the path of the file to errors of `body`.
    static func about<Result>(
        file path: String, _ body: () throws(TrustFailure.InvalidPolicy) -> Result
    ) throws(TrustFailure.InvalidPolicy) -> Result {
        do throws(TrustFailure.InvalidPolicy) {
            return try body()
        } catch {
            throw TrustFailure.InvalidPolicy("\(path.escapingControls): \(error.message)", hint: error.hint)
        }
    }
}
