// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension TransferStore.Download {
    /// Completes a rename that an earlier process began: finds the renamed file, or renames the part file now.
    ///
    /// The method blocks: call it on a disk thread.
    ///
    /// - Returns: The path of the file; nil when neither the file nor its part exists any more, the name is taken, or
    ///   the journal names files that do not belong to this download.
    func finishRename() throws(DiskFailure) -> String? {
        guard let placing, implies(placing) else { return nil }
        var (name, number) = (placing.path, 1)
        while let found = DiskFile.identity(of: name) {
            if found == placing.identity {
                // On a file system that cannot rename atomically, the file may have both names.
                if name != placing.part, DiskFile.identity(of: placing.part) == found { DiskFile.remove(placing.part) }
                DiskFile.remove(placing.part + ".json")
                return try synced(name)
            }
            guard overwrite == .uniquify, number < 10_000 else { break }
            number += 1
            name = FileName.numbered(path: placing.path, number)
        }
        guard DiskFile.identity(of: placing.part) == placing.identity else { return nil }
        // After a reboot, bytes that were not synced may be garbage.
        guard saving.isSynced || placing.bootID == DiskFile.bootID else { return nil }
        do throws(DiskFailure) {
            let part = try PartialFile.open(placing.part)
            // `open` creates a new file when the part was removed, or when it has a second hard link.
            guard try part.identity() == placing.identity else { return nil }
            name = try PartialDownload.move(part, to: placing.path, overwrite)
        } catch {
            // The download reports the error itself when it is reattached.
            return nil
        }
        DiskFile.remove(placing.part + ".json")
        return try synced(name)
    }

    /// Syncs the directory of a renamed file if the download's options request it, and returns the name.
    private func synced(_ name: String) throws(DiskFailure) -> String {
        guard saving.isSynced else { return name }
        do throws(DiskFailure) { try DiskFile.syncDirectory(of: name) } catch {
            // On a full disk the sync fails, but the file has its name.
            guard error.isFull else { throw error }
        }
        return name
    }

    /// Returns whether both paths of a pending rename can belong to this download.
    ///
    /// A manipulated journal must not make the store move or remove files of others.
    func implies(_ placing: PendingRename) -> Bool { isOwn(path: placing.path) && isOwn(part: placing.part) }

    /// Returns whether the path is the destination, or is directly in it with a name that a server can suggest.
    private func isOwn(path: String) -> Bool {
        guard isInDirectory else { return path.utf8.elementsEqual(destination.utf8) }
        let bytes = path.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        let name = String(path[start...])
        guard let safe = FileName.safe(name), safe.utf8.elementsEqual(name.utf8) else { return false }
        return bytes.elementsEqual(place.joined(destination, name).utf8)
    }

    /// Returns whether the path is the destination's part file, or a numbered one that `.uniquify` uses as a
    /// substitute.
    private func isOwn(part: String) -> Bool {
        guard let implied = place.part(of: url) else { return false }
        if part.utf8.elementsEqual(implied.utf8) { return true }
        guard overwrite == .uniquify, let number = Int(part.dropLast(5).split(separator: ".").last ?? "") else {
            return false
        }
        return PartialDownload.numbers ~= number
            && part.utf8.elementsEqual(PartialDownload.numbered(implied, number).utf8)
    }
}
