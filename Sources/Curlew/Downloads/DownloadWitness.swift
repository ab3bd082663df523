// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Somebody who takes down what becomes of a download, before it is so for everybody else.
protocol DownloadWitness: Sendable {
    /// It has a place in the queue, and begins.
    func begins() async
    /// A part that is whole and was checked is about to get its name.
    ///
    /// - Throws: Why it must not.
    func places(_ part: FileIdentity, from partPath: String, at path: String) async throws(DiskFailure)
    /// It is over.
    func ended(_ result: Result<DownloadedFile, NetworkError>, isDiscarded: Bool) async
}
