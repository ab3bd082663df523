// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// A temporary directory of one test, removed at deinitialization.
final class Folder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/curlew-downloads-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw POSIXFailure(errno: errno) }
        path = String(cString: made)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

    /// The names of the entries, sorted.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    func bytes(_ name: String) -> [UInt8]? { try? DiskFile.contents(of: self(name), upTo: .max) }

    func write(_ name: String, _ bytes: [UInt8]) {
        _ = FileManager.default.createFile(atPath: self(name), contents: Data(bytes))
    }
}

struct POSIXFailure: Error { let errno: Int32 }

/// A server with one resource that tests can replace; it resets the connection within some responses.
final class ResourceServer: Sendable {
    struct State {
        var resource: RangeResource
        /// The numbers of body bytes after which the next responses are reset.
        var cuts: [Int]
        /// Whether the server sends the login page of a captive portal, or status 503.
        var isPortal = false
        var isDown = false
    }

    let state: Lock<State>
    let server: MockServer

    init(_ resource: RangeResource, cuts: [Int] = []) throws {
        let state = Lock(State(resource: resource, cuts: cuts))
        self.state = state
        server = try MockServer { request in
            if state.withLock({ $0.isPortal }) { return .text("<p>Log in").field("Content-Type", "text/html") }
            if state.withLock({ $0.isDown }) { return .status(503) }
            let (resource, cut) = state.withLock { ($0.resource, $0.cuts.isEmpty ? nil : $0.cuts.removeFirst()) }
            let answer = resource.response(to: request)
            return cut.map { answer.fault(.reset, at: .body($0)) } ?? answer
        }
    }

    var url: String { server.url("/big.bin") }

    /// The `Range` fields of the requests, nil for a request without one.
    var ranges: [String?] { server.requests.map { $0.field("Range") } }
}

extension PatternBody {
    /// A body of 1,234,567 bytes.
    static let usual = PatternBody(seed: 10, length: 1_234_567)
}

/// The error of a download that has to fail.
func failure(
    of work: () async throws(NetworkError) -> DownloadedFile, _ place: SourceLocation = #_sourceLocation
) async -> NetworkError? {
    do throws(NetworkError) {
        let file = try await work()
        Issue.record("the download succeeded: \(file)", sourceLocation: place)
        return nil
    } catch {
        return error
    }
}
