// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension ResumeToken {
    /// Removes the part, and what stands beside it, where nobody wants to go on with it.
    ///
    /// What another download writes at the moment, or something else has become of, stays.
    public func discard() async { await DownloadPart.remove(part, of: url) }
}

extension ResumeToken {
    /// How many bytes of a part of this size can be gone on with.
    ///
    /// What was not on the disk for certain when the machine ended may be anything.
    func usable(of size: Int64) -> Int64 {
        // What was there is there, or somebody has cut it off.
        if isOfThisStart, size < offset { return 0 }
        if pieces != nil {
            let known = isOfThisStart ? offset : min(offset, synced)
            return known > size ? 0 : known
        }
        let known = isOfThisStart ? size : min(size, synced)
        return known > total ?? .max ? 0 : known
    }

    /// The pieces of such a part that can be used; nil where it is a beginning and nothing else.
    func usablePieces(of size: Int64) -> [Range<Int64>]? {
        guard let pieces else { return nil }
        return (isOfThisStart ? pieces : syncedPieces ?? []).filter { $0.upperBound <= size }
    }

    /// Whether its numbers can be those of a part, and not of somebody who has edited it.
    var makesSense: Bool {
        let most = total ?? .max
        return most >= 0 && 0...most ~= offset && 0...most ~= synced
            && (pieces ?? []).allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= most }
    }

    /// Whether it was written since the machine has started.
    private var isOfThisStart: Bool { !bootID.isEmpty && bootID == DiskFile.bootID }
}
