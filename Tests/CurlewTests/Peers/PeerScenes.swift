// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Testing

/// What happens to one transfer while others, on the same connection of HTTP/2, must not notice.
enum NeighbourScene: CaseIterable, Sendable {
    case paused, slowReader, cancelledDownload, cancelledUpload
}

/// Uploads to a server that stores what is put under "/upload/" and takes little under "/limited/".
enum UploadScene: CaseIterable, Sendable {
    case large, ofUnknownLength, refused, asked, refusedWhenAsked

    /// Each by every route that it means something to.
    static let all = allCases.flatMap { scene in scene.routes.map { (scene, $0) } }

    /// Only HTTP/1.1 is asked before the body is sent.
    private var routes: [PeerRoute] {
        switch self {
        case .large, .ofUnknownLength, .refused: PeerRoute.allCases
        case .asked, .refusedWhenAsked: PeerRoute.http1Only
        }
    }
}

extension PeerScenario {
    /// - Parameter path: Where a body is put.
    func leavesOthers(_ scene: NeighbourScene, uploadingTo path: String) async throws {
        switch scene {
        case .paused: try await othersRunWhilePaused()
        case .slowReader: try await othersRunBesideSlowReader()
        case .cancelledDownload: try await cancelledDownloadLeavesOthers()
        case .cancelledUpload: try await cancelledUploadLeavesOthers(.put, path)
        }
    }

    func uploads(_ scene: UploadScene) async throws {
        let small = PatternBody(seed: 5, length: 9000)
        switch scene {
        case .large: try await stores(PeerInstance.large, as: .file(server.instance.largeFile))
        case .ofUnknownLength:
            let source = ChunkSource(body: PatternBody(seed: 2, length: 5_000_000), chunk: 70_001)
            try await stores(source.body, as: .stream(source))
        case .refused:
            let body = RequestBody.file(server.instance.largeFile)
            try await isRefusedEarly("/limited/x", body, sends: 0...(32 << 20), mayLoseAnswer: true)
        case .asked: try await stores(small, fields: [.expect: "100-continue"])
        case .refusedWhenAsked:
            let body = RequestBody.bytes(small.bytes)
            try await isRefusedEarly("/limited/x", body, sends: 0...0, fields: [.expect: "100-continue"])
        }
    }
}
