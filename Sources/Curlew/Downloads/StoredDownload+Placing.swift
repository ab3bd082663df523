// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension StoredDownload {
    /// Finds out whether the file that was about to get its name has it, and gives it to it otherwise.
    ///
    /// For a disk thread.
    ///
    /// - Returns: The name; nil when neither the file nor its part is there any more, the name is taken, or the
    ///   journal names other files than this download's.
    func finishPlacing() throws(DiskFailure) -> String? {
        guard let placing, implies(placing) else { return nil }
        var (name, number) = (placing.path, 1)
        while let found = DiskFile.identity(of: name) {
            if found == placing.identity {
                // Where a file cannot just be renamed it may have both names.
                if name != placing.part, DiskFile.identity(of: placing.part) == found { DiskFile.remove(placing.part) }
                DiskFile.remove(placing.part + ".json")
                return try synced(name)
            }
            guard overwrite == .uniquify, number < 10_000 else { break }
            number += 1
            name = FileName.numbered(path: placing.path, number)
        }
        guard DiskFile.identity(of: placing.part) == placing.identity else { return nil }
        // What was not synced may be anything after the machine has ended.
        guard saving.isSynced || placing.bootID == DiskFile.bootID else { return nil }
        do throws(DiskFailure) {
            let part = try PartFile.open(placing.part)
            // Opening makes a new file when the part was removed, or when it has a second hard link.
            guard try part.identity() == placing.identity else { return nil }
            name = try DownloadPart.move(part, to: placing.path, overwrite)
        } catch {
            // The download says so itself, when it is reattached.
            return nil
        }
        DiskFile.remove(placing.part + ".json")
        return try synced(name)
    }

    /// A name that is on the disk for certain, where the download wants that.
    private func synced(_ name: String) throws(DiskFailure) -> String {
        guard saving.isSynced else { return name }
        do throws(DiskFailure) { try DiskFile.syncDirectory(of: name) } catch {
            // The file has its name all the same.
            guard error.isFull else { throw error }
        }
        return name
    }

    /// Whether what the journal says of a file that is about to get its name can be of this download.
    ///
    /// Whatever a journal says, files other than the download's own are neither moved nor removed.
    func implies(_ placing: Placing) -> Bool { isOwn(path: placing.path) && isOwn(part: placing.part) }

    /// Whether it is the destination, or directly in it, of a name that a server can suggest.
    private func isOwn(path: String) -> Bool {
        guard isInDirectory else { return path.utf8.elementsEqual(destination.utf8) }
        let bytes = path.utf8
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
        let name = String(path[start...])
        guard let safe = FileName.safe(name), safe.utf8.elementsEqual(name.utf8) else { return false }
        return bytes.elementsEqual(place.joined(destination, name).utf8)
    }

    /// Whether it is the part that the destination implies, or one of the further ones where that was taken.
    private func isOwn(part: String) -> Bool {
        guard let implied = place.part(of: url) else { return false }
        if part.utf8.elementsEqual(implied.utf8) { return true }
        guard overwrite == .uniquify, let number = Int(part.dropLast(5).split(separator: ".").last ?? "") else {
            return false
        }
        return DownloadPart.numbers ~= number && part.utf8.elementsEqual(DownloadPart.numbered(implied, number).utf8)
    }
}
