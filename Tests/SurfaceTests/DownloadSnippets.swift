// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal
import CurlewTesting
import FoundationEssentials

// The snippets about downloads, word for word; parameters provide the values that a snippet assumes.

// Downloads/Session+Downloads.swift
func snippetOfDownload(_ session: Session) async throws {
    let file = try await session.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    print(file.path, file.bytes)
}

// Downloads/DownloadDestination.swift
func snippetOfDestinations(_ session: Session) async throws {
    try await session.download("https://example.com/big.iso", to: .file("/srv/iso/big.iso"))
    try await session.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    try await session.download("https://example.com/7", to: .choosing { "/srv/\($0.contentLength ?? 0).bin" })
}

func snippetOfDownloadOptions() -> DownloadOptions {
    var options = DownloadOptions()
    options.createsDirectories = true
    return options
}

// HTTP/Checksum.swift
func snippetOfChecksum(_ session: Session) async throws {
    let known: Checksum = .sha256("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    let file = try await session.download("https://example.com/big.iso", to: .directory("."), expecting: known)
    print(file)
}

// Response/ResumeToken.swift
func snippetOfResumeToken(_ session: Session, _ download: Transfer<DownloadedFile>, _ url: URL) async throws {
    let token = await download.cancel(producingResumeToken: true)
    if let token { try JSONEncoder().encode(token).write(to: url) }
    // …
    if let token {
        let file = try await session.resume(from: token).value
        print(file)
    }
}

// HTTP/ContentDisposition.swift, HTTP/ContentRange.swift
func snippetOfDownloadFields() {
    let disposition = ResponseHead.ContentDisposition(
        "attachment; filename=\"r.pdf\"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf")
    print(disposition?.filename ?? "")  // résumé.pdf
    let range = ResponseHead.ContentRange("bytes 500-999/8000")
    print(range?.bytes ?? 0...0, range?.total ?? 0)  // 500...999 8000
}

// CurlewTesting/RangeResource.swift
func snippetOfRangeResource() throws -> MockServer {
    let resource = RangeResource(PatternBody(seed: 1, length: 1 << 20))
    let server = try MockServer { request in resource.response(to: request) }
    return server
}

// Client/Client+Downloads.swift
func snippetOfClientDownload(_ api: JSONClient) async throws {
    let file = try await api.download("exports/7", to: .directory("/srv/exports"))
    print(file)
}

// Terminal/TerminalProgress.swift
func snippetOfTerminalProgress(_ session: Session) async throws {
    let display = TerminalProgress()
    let download = session.downloadTransfer("https://example.com/big.iso", to: .directory("."))
    display.watch(download, as: "big.iso")
    _ = try? await download.value
    await display.finish()
}

// Downloads/DownloadQueue.swift
func snippetOfDownloadQueue() -> DownloadOptions {
    let queue = DownloadOptions.Queue(atMost: 2)
    var options = DownloadOptions()
    options.queue = queue
    return options
}

// Downloads/TransferStore.swift
func snippetOfTransferStore(_ session: Session) async throws {
    let store = try await TransferStore(at: "/var/lib/mirror/transfers")
    for earlier in await store.reattach(session) { print("resuming", earlier.record) }
    try await store.download("https://example.com/big.iso", on: session, to: .directory("/srv/iso"))
    for await report in store.reports {
        switch report {
        case .finished(let record): print(record.path ?? "", record.userInfo)
        case .failed(let record): print(record)
        case .drained: return
        }
    }
}

// Downloads/IncomingResponse+Saving.swift
func snippetOfOpened(_ session: Session) async throws {
    let response = try await session.transfer("https://example.com/export").opened()
    if response.head.contentLength ?? .max < 1 << 20 {
        let data = try await response.collect()
        print(data.count)
    } else {
        try await response.save(to: .directory("/srv/exports"))
    }
}
