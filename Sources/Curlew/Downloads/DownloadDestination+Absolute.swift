// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension DownloadDestination {
    /// The same, wherever the process goes meanwhile.
    var absolute: DownloadDestination {
        switch place {
        case .file(let path): .file(Self.absolute(path))
        case .directory(let path): .directory(DiskFile.absolute(path))
        case .choosing(let choose): .choosing { Self.absolute(try choose($0)) }
        }
    }

    /// What is no path stays none.
    private static func absolute(_ path: String) -> String { path.isEmpty ? path : DiskFile.absolute(path) }
}
