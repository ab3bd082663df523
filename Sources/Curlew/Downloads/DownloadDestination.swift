// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The destination of a download.
///
/// ```swift
/// try await session.download("https://example.com/big.iso", to: .file("/srv/iso/big.iso"))
/// try await session.download("https://example.com/big.iso", to: .directory("/srv/iso"))
/// try await session.download("https://example.com/7", to: .choosing { "/srv/\($0.contentLength ?? 0).bin" })
/// ```
public struct DownloadDestination: Sendable {
    enum Location: Sendable {
        case file(String)
        case directory(String)
        case choosing(@Sendable (ResponseHead) throws -> String)
    }

    let location: Location

    /// A file at a path.
    public static func file(_ path: String) -> DownloadDestination { DownloadDestination(location: .file(path)) }

    /// A file in a directory, with the name that the server suggests (``ResponseHead/suggestedFilename``).
    public static func directory(_ path: String) -> DownloadDestination {
        DownloadDestination(location: .directory(path))
    }

    /// A file at the path that a closure returns for the response's head; an error of the closure ends the download.
    public static func choosing(_ path: @escaping @Sendable (ResponseHead) throws -> String) -> DownloadDestination {
        DownloadDestination(location: .choosing(path))
    }

    /// Returns the path of the part file; nil when the path depends on the response.
    func part(of url: String) -> String? {
        switch location {
        case .file(let path): return path + ".part"
        case .directory(let directory):
            let name = FileName.ofPath(of: url) ?? "download"
            // Several resources may have the same name, so a digest of the whole URL distinguishes them.
            let digest = MessageDigest.digest(.sha256, of: url.utf8) ?? []
            return joined(directory, "\(name).\(digest.prefix(4).hexadecimal).part")
        case .choosing: return nil
        }
    }

    /// The path of the file; nil when the path depends on the response.
    var path: String? { if case .file(let path) = location { path } else { nil } }

    /// Returns the path of the file for a part file that was found, using the file name in the part's note.
    ///
    /// The directory may have moved since the note was written, so only the note's file name counts.
    func path(for note: ResumeToken) -> String {
        guard case .directory(let directory) = location else { return path ?? note.destination }
        let start = note.destination.utf8.lastIndex(of: UInt8(ascii: "/")).map {
            note.destination.utf8.index(after: $0)
        }
        return joined(directory, String(note.destination[(start ?? note.destination.startIndex)...]))
    }

    /// Returns the path of the file for a response.
    ///
    /// - Throws: The error of the closure of `.choosing`.
    func path(for head: ResponseHead) throws -> String {
        switch location {
        case .file(let path): path
        case .directory(let directory): joined(directory, head.suggestedFilename)
        case .choosing(let choose): try choose(head)
        }
    }

    /// Joins a directory and a file name.
    func joined(_ directory: String, _ name: String) -> String {
        directory.isEmpty ? name : directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
    }
}
