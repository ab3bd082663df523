// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Testing

/// Events of one transfer that must not disturb other transfers on the same HTTP/2 connection.
enum NeighbourScene: CaseIterable, Sendable {
    case paused, slowReader, cancelledDownload, cancelledUpload
}

/// Uploads to a server that stores bodies below "/upload/" and limits their length below "/limited/".
enum UploadScene: CaseIterable, Sendable {
    case large, ofUnknownLength, refused, asked, refusedWhenAsked

    /// Each scene with every route to which it applies.
    static let all = allCases.flatMap { scene in scene.routes.map { (scene, $0) } }

    /// `Expect: 100-continue` is sent over HTTP/1.1 only.
    private var routes: [PeerRoute] {
        switch self {
        case .large, .ofUnknownLength, .refused: PeerRoute.allCases
        case .asked, .refusedWhenAsked: PeerRoute.http1Only
        }
    }
}

extension PeerScenario {
    /// Runs a scene and checks that the other transfers of the connection are not disturbed.
    ///
    /// - Parameter path: The path to which a body is uploaded.
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
