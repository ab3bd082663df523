// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension PartialDownload {
    /// The numbers for further part files of one destination, used while another download has the first one.
    static let numbers = 2..<1000

    /// Returns the path of a numbered part file.
    static func numbered(_ place: String, _ number: Int) -> String { "\(place.dropLast(5)).\(number).part" }

    /// Deletes the part file and its note.
    ///
    /// - Parameter others: Whether to delete also a part file that an earlier download left and this one has not
    ///   reused.
    func remove(evenIfOfOthers others: Bool = false) async {
        let (file, goes) = (file, belongsToDownload || others)
        guard goes else { return file.unlock() }
        _ = await DiskThread.saving.value(at: file.path) {
            Self.remove(file)
            file.unlock()
        }
    }

    /// Deletes a part file and its note, unless a download is using it or it belongs to another URL.
    static func remove(_ path: String, of url: String) async {
        _ = await DiskThread.saving.value(at: path) {
            guard source(of: path) == url, DiskFile.exists(path), let file = try? PartialFile.open(path) else { return }
            remove(file)
        }
    }

    private static func remove(_ file: PartialFile) {
        // Another process may have moved or renamed the file: leave it alone then.
        guard file.stillHasName else { return }
        try? file.truncate(to: 0)
        removeNote(beside: file.path)
        file.remove()
    }

    /// Renames the complete part file to its final name.
    ///
    /// - Parameter observer: An observer that records the rename before it happens.
    /// - Returns: The final path.
    mutating func place(
        at path: String, _ overwrite: DownloadDestination.Overwrite, before observer: (any DownloadObserver)?
    ) async throws(DiskFailure) -> String {
        try await sink.flush()
        let (file, isSynced) = (file, options.isSynced)
        let size = try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in try file.size() }
        guard size == stored else { throw DiskFailure("another process changed", file.path, DiskFailure.existsNumber) }
        hasUnsyncedRisk = isSynced
        if isSynced {
            let isKnown = observer != nil
            try await DiskThread.syncing.result(at: file.path) { () throws(DiskFailure) in
                try file.sync(withTimes: isKnown)
            }
        }
        if let observer {
            let identity = try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
                try file.identity()
            }
            try await observer.willRename(identity, from: file.path, to: path)
        }
        let name = try await DiskThread.saving.result(at: file.path) { () throws(DiskFailure) in
            let name = try Self.move(file, to: path, overwrite)
            // Remove the note after the rename: a part file without a note cannot be resumed.
            Self.removeNote(beside: file.path)
            file.unlock()
            return name
        }
        isPlaced = true
        if isSynced {
            do throws(DiskFailure) {
                try await DiskThread.syncing.result(at: name) { () throws(DiskFailure) in
                    try DiskFile.syncDirectory(of: name)
                }
            } catch {
                throw DiskFailure(
                    "\(name) is complete, but a power failure may delete it: \(error.operation)", error.path,
                    error.errno)
            }
        }
        return name
    }

    static func move(
        _ file: PartialFile, to path: String, _ overwrite: DownloadDestination.Overwrite
    ) throws(DiskFailure) -> String {
        var (name, number) = (path, 1)
        while true {
            do throws(DiskFailure) {
                try file.move(to: name, replacing: overwrite == .replace)
                return name
            } catch {
                guard overwrite == .uniquify, error.alreadyExists, number < 10_000 else { throw error }
                number += 1
                name = FileName.numbered(path: path, number)
            }
        }
    }
}
