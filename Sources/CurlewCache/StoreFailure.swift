// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine

/// An error of a store on the disk.
enum StoreFailure: Error, CustomStringConvertible {
    case index(Database.Failure)
    case file(DiskFailure)
    /// A stored body does not have its digest.
    case damaged
    /// OpenSSL has no AES-GCM.
    case noDigest

    var description: String {
        switch self {
        case .index(let failure): "the index cannot be used: \(failure)"
        case .file(let failure): failure.description
        case .damaged: "a stored body is damaged"
        case .noDigest: "OpenSSL has no AES-GCM"
        }
    }
}
