// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension DownloadDestination {
    /// The destination with absolute paths, which stay valid when the process changes its working directory.
    var absolute: DownloadDestination {
        switch location {
        case .file(let path): .file(Self.absolute(path))
        case .directory(let path): .directory(DiskFile.absolute(path))
        case .choosing(let choose): .choosing { Self.absolute(try choose($0)) }
        }
    }

    /// Returns the absolute form of a path; an empty path stays empty and is rejected later.
    private static func absolute(_ path: String) -> String { path.isEmpty ? path : DiskFile.absolute(path) }
}
