// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension ResumeToken {
    /// Deletes the part file and its note, when the download is not to be resumed.
    ///
    /// A part file that another download is writing, or that belongs to another URL by now, stays.
    public func discard() async { await PartialDownload.remove(part, of: url) }
}

extension ResumeToken {
    /// Returns how many bytes at the start of a part file of this size can be reused.
    ///
    /// After a reboot, bytes that were not synced may be garbage.
    func usable(of size: Int64) -> Int64 {
        // Without a reboot, another process truncated a file that is shorter than the note states.
        if isOfThisStart, size < offset { return 0 }
        if pieces != nil {
            let known = isOfThisStart ? offset : min(offset, synced)
            return known > size ? 0 : known
        }
        let known = isOfThisStart ? size : min(size, synced)
        return known > total ?? .max ? 0 : known
    }

    /// Returns the chunks behind the offset that can be reused; nil when the part file has only a beginning.
    func usablePieces(of size: Int64) -> [Range<Int64>]? {
        guard let pieces else { return nil }
        return (isOfThisStart ? pieces : syncedPieces ?? []).filter { $0.upperBound <= size }
    }

    /// Whether the numbers are consistent; a note that was edited or damaged may have impossible ones.
    var makesSense: Bool {
        let most = total ?? .max
        return most >= 0 && 0...most ~= offset && 0...most ~= synced
            && (pieces ?? []).allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= most }
    }

    /// Whether the note was written since the last boot of the machine.
    private var isOfThisStart: Bool { !bootID.isEmpty && bootID == DiskFile.bootID }
}
