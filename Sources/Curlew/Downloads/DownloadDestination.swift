// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Where a downloaded file goes.
///
/// ```swift
/// try await session.download("https://example.com/big.iso", to: .file("/srv/iso/big.iso"))
/// try await session.download("https://example.com/big.iso", to: .directory("/srv/iso"))
/// try await session.download("https://example.com/7", to: .choosing { "/srv/\($0.contentLength ?? 0).bin" })
/// ```
public struct DownloadDestination: Sendable {
    enum Place: Sendable {
        case file(String)
        case directory(String)
        case choosing(@Sendable (ResponseHead) throws -> String)
    }

    let place: Place

    /// A file of this path.
    public static func file(_ path: String) -> DownloadDestination { DownloadDestination(place: .file(path)) }

    /// A file in this directory, of the name that the server suggests (``ResponseHead/suggestedFilename``).
    public static func directory(_ path: String) -> DownloadDestination { DownloadDestination(place: .directory(path)) }

    /// A file of the path that a closure gives when the response's head has come; an error it throws ends the download.
    public static func choosing(_ path: @escaping @Sendable (ResponseHead) throws -> String) -> DownloadDestination {
        DownloadDestination(place: .choosing(path))
    }

    /// The path of the part file, where that is known before the response.
    func part(of url: String) -> String? {
        switch place {
        case .file(let path): return path + ".part"
        case .directory(let directory):
            let name = FileName.ofPath(of: url) ?? "download"
            // Several resources have the same name; which one it is, the whole URL says.
            let digest = MessageDigest.digest(.sha256, of: url.utf8) ?? []
            return joined(directory, "\(name).\(digest.prefix(4).hexadecimal).part")
        case .choosing: return nil
        }
    }

    /// The path of the file, where that is known before the response.
    var path: String? { if case .file(let path) = place { path } else { nil } }

    /// The path of a file of which a part was found, with the path it was to have.
    ///
    /// The directory may have moved since.
    func path(for note: ResumeToken) -> String {
        guard case .directory(let directory) = place else { return path ?? note.destination }
        let start = note.destination.utf8.lastIndex(of: UInt8(ascii: "/")).map {
            note.destination.utf8.index(after: $0)
        }
        return joined(directory, String(note.destination[(start ?? note.destination.startIndex)...]))
    }

    /// The path of the file.
    ///
    /// - Throws: What the closure throws.
    func path(for head: ResponseHead) throws -> String {
        switch place {
        case .file(let path): path
        case .directory(let directory): joined(directory, head.suggestedFilename)
        case .choosing(let choose): try choose(head)
        }
    }

    /// The path of a file in a directory.
    func joined(_ directory: String, _ name: String) -> String {
        directory.isEmpty ? name : directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
    }
}
