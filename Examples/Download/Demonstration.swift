// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal
import CurlewTesting
import FoundationEssentials
import Glibc

/// A demonstration of the downloader with a local server whose connections break.
struct Demonstration {
    private static let names = ["archive.tar", "film.mkv", "日本語.pdf"]
    private static let length = 6 << 20

    private let server: MockServer
    private let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID())")
    private let isBroken = Gate()

    init() throws {
        let isBroken = isBroken
        server = try MockServer { request in
            let resource = RangeResource(Self.body(of: request.path))
            // Send in small parts, so that the progress is visible.
            let answer = resource.response(to: request).dripping(bytes: 512 << 10, every: .milliseconds(50))
            return isBroken.isOpen ? answer : answer.fault(.close, at: .body(Self.length / 3))
        }
    }

    private static func body(of path: String) -> PatternBody {
        PatternBody(seed: UInt64(path.utf8.count), length: length)
    }

    /// Runs the demonstration and ends the program, with status 0 if all results are as expected.
    func run(_ form: TerminalProgress.Form) async throws -> Never {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var order = try Order(["--dir", folder.path])
        order.form = form
        order.urls = Self.names.map { server.url("/" + $0.percentEncoded) }

        print("A server whose connections break after a third:")
        order.retries = false
        let first = Downloader(order)
        _ = await first.run()
        let parts = await first.outcome.parts.map(\.offset)
        expect("\(parts.count) parts of \(parts) bytes", parts == Self.names.map { _ in Int64(Self.length / 3) })

        print("The same downloads with a working server:")
        isBroken.open()
        let before = server.requests.count
        let second = Downloader(order)
        let status = await second.run()
        let ranges = server.requests.dropFirst(before).map { $0.field("Range") ?? "everything" }
        expect("status \(status)", status == 0)
        expect("requested \(ranges)", ranges == Self.names.map { _ in "bytes=\(Self.length / 3)-" })
        for (name, url) in zip(Self.names, order.urls) {
            let path = String(url.dropFirst(server.origin.count))
            let bytes = FileManager.default.contents(atPath: folder.appending(path: name).path) ?? Data()
            expect("\(name) is complete", [UInt8](bytes) == Self.body(of: path).bytes)
        }
        try FileManager.default.removeItem(at: folder)
        print("\(server.requests.count) requests, all results as expected")
        exit(0)
    }

    private func expect(_ what: String, _ isTrue: Bool) {
        print("  " + what + (isTrue ? "" : " <- unexpected"))
        guard !isTrue else { return }
        try? FileManager.default.removeItem(at: folder)
        exit(1)
    }
}

extension String {
    /// The text in percent-encoded form for a path.
    fileprivate var percentEncoded: String {
        utf8.map { byte in
            let isPlain = byte < 0x80 && (Character(Unicode.Scalar(byte)).isLetter || byte == UInt8(ascii: "."))
            return isPlain ? String(Unicode.Scalar(byte)) : "%" + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
