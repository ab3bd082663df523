// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import Glibc

/// Checks that run before the first byte of a file is received, rather than after the last one.
extension Request {
    /// Rejects invalid digests, and algorithms that OpenSSL on this machine does not support.
    func check(
        expecting checksums: [Checksum?], computing algorithm: Checksum.Algorithm?
    ) throws(NetworkError) {
        let checksums = checksums.compactMap(\.self)
        for checksum in checksums where checksum.digest.isEmpty {
            throw NetworkError(
                invalid: .destination,
                "The expected checksum is not a \(checksum.algorithm.rawValue) digest.",
                hint: "Write it with \(checksum.algorithm.count * 2) hexadecimal digits, or in base64.",
                request: self)
        }
        for algorithm in checksums.map(\.algorithm) + (algorithm.map { [$0] } ?? [])
        where !algorithm.openSSL.isAvailable {
            throw notComputed(algorithm)
        }
    }

    /// Returns the digest of the received bytes.
    ///
    /// - Throws: An error when the digest was not computed, so that an expected digest never passes without a
    ///   comparison.
    func computed(_ digest: Checksum?, as algorithm: Checksum.Algorithm) throws(NetworkError) -> Checksum {
        guard let digest else { throw notComputed(algorithm) }
        return digest
    }

    private func notComputed(_ algorithm: Checksum.Algorithm) -> NetworkError {
        NetworkError(
            .unsupported, phase: .preparing, "OpenSSL on this machine lacks \(algorithm.rawValue).", request: self
        )
    }

    /// Rejects a path that cannot name a file, or that already exists.
    ///
    /// - Throws: `NetworkError` for an invalid path; `DiskFailure` for an error of the file system.
    func check(_ path: String, _ overwrite: DownloadDestination.Overwrite) async throws {
        let name = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? ""[...].utf8
        guard !name.isEmpty, !DiskFile.hasNUL(path), !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8)
        else {
            throw NetworkError(
                invalid: .destination,
                path.isEmpty ? "The file has no path." : "“\(path.escapingControls)” is not a file's path.",
                hint: "Use .directory to let the server name the file.", request: self)
        }
        if name.count > FileName.longest { throw DiskFailure("cannot create", path, ENAMETOOLONG) }
        if overwrite == .uniquify { return }
        let found = await DiskThread.saving.value(at: path) {
            (DiskFile.exists(path), DiskFile.isDirectory(itself: path))
        }
        guard let (exists, isDirectory) = found, exists else { return }
        if isDirectory { throw DiskFailure("there is a directory at", path, EISDIR) }
        if overwrite == .fail { throw DiskFailure("there is already", path, EEXIST) }
        try await DiskThread.saving.result(at: path) { () throws(DiskFailure) in try DiskFile.checkReplaceable(path) }
    }
}
