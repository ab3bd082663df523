// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import Glibc

/// What is refused before a byte of a file is received, rather than after the last.
extension Request {
    /// Refuses digests that are none, and those that this machine does not compute.
    func check(
        expecting checksums: [Checksum?], computing algorithm: Checksum.Algorithm?
    ) throws(NetworkError) {
        let checksums = checksums.compactMap(\.self)
        for checksum in checksums where checksum.digest.isEmpty {
            throw NetworkError(
                invalid: .destination,
                "The checksum that is expected is no \(checksum.algorithm.rawValue) digest.",
                hint: "It has \(checksum.algorithm.count * 2) hexadecimal digits, or is written in base64.",
                request: self)
        }
        for algorithm in checksums.map(\.algorithm) + (algorithm.map { [$0] } ?? [])
        where !algorithm.openSSL.isAvailable {
            throw notComputed(algorithm)
        }
    }

    /// The digest of what was received.
    ///
    /// - Throws: What is said where it was not computed: a digest that nobody has compared does not fit.
    func computed(_ digest: Checksum?, as algorithm: Checksum.Algorithm) throws(NetworkError) -> Checksum {
        guard let digest else { throw notComputed(algorithm) }
        return digest
    }

    private func notComputed(_ algorithm: Checksum.Algorithm) -> NetworkError {
        NetworkError(
            .unsupported, phase: .preparing, "OpenSSL on this machine computes no \(algorithm.rawValue).", request: self
        )
    }

    /// Refuses a path that no file can have, or that is taken.
    ///
    /// - Throws: `NetworkError` for what is no path of a file; `DiskFailure` for what the disk has to say.
    func check(_ path: String, _ overwrite: DownloadOverwrite) async throws {
        let name = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? ""[...].utf8
        guard !name.isEmpty, !DiskFile.hasNUL(path), !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8)
        else {
            throw NetworkError(
                invalid: .destination,
                path.isEmpty ? "The file has no path." : "“\(path.escapingControls)” is no path of a file.",
                hint: "For a file that the server names, give .directory.", request: self)
        }
        if name.count > FileName.longest { throw DiskFailure("cannot make", path, ENAMETOOLONG) }
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
