// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// An observer that records the progress of a download before other code can see it.
protocol DownloadObserver: Sendable {
    /// Called when the download has a slot in its queue and starts.
    func didStart() async
    /// Called when a complete and checked part file is about to be renamed.
    ///
    /// - Throws: An error that prevents the rename.
    func willRename(_ part: FileIdentity, from partPath: String, to path: String) async throws(DiskFailure)
    /// Called when the download has ended.
    func didEnd(_ result: Result<DownloadedFile, NetworkError>, isDiscarded: Bool) async
}
