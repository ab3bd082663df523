// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// HTTP/3 with a real server, if libcurl supports it.
@Suite(
    "HTTP/3 with aioquic", .enabledIfInstalled(.aioquic), .peer(.aioquic), .timeLimit(.minutes(5)),
    .enabled(if: CurlVersion.current.hasHTTP3, "libcurl does not support HTTP/3"))
struct HTTP3Tests {
    /// A server over TCP that announces the HTTP/3 server at the same port.
    private struct Pair {
        let udp: HTTP3Server
        let tcp: MockServer
        let session: Session

        var port: UInt16 { tcp.port }
        func url(_ path: String) -> String { "https://localhost:\(port)\(path)" }
    }

    private func pair(trust: ((TestAuthority) throws -> any TrustEvaluator)? = nil) throws -> Pair {
        for _ in 0..<20 {
            let udp = try HTTP3Server()
            var options = MockServer.Options()
            options.port = udp.instance.ports[.secure] ?? 0
            let port = options.port
            let server = try? MockServer(tls: udp.authority.issue(), options: options) { _ in
                .text("over TCP").field("Alt-Svc", "h3=\":\(port)\"; ma=60").closing()
            }
            guard let server else { continue }
            let evaluator = try trust?(udp.authority) ?? CustomRoots(pem: udp.authority.certificatePEM)
            let session = Session(trust: evaluator) { $0.http.version = .http3 }
            return Pair(udp: udp, tcp: server, session: session)
        }
        throw PeerFailure("no port is free for both TCP and UDP")
    }

    @Test func announcedHTTP3IsUsed() async throws {
        let pair = try pair()
        let first = try await pair.session.transfer(Request(pair.url("/first"))).response()
        #expect(first.value == Data("over TCP".utf8) && first.metrics.version == .http1_1)
        #expect(first.metrics.withoutHTTP3 == "the server has not announced HTTP/3")
        let second = try await pair.session.transfer(Request(pair.url("/second"))).response()
        #expect(second.value == Data("GET /second ".utf8))
        #expect(second.metrics.version == .http3 && second.metrics.withoutHTTP3 == nil)
        #expect(second.metrics.tlsVersion == "TLSv1.3" && second.metrics.serverCertificate != nil)
        #expect(second.metrics.remoteAddress == "127.0.0.1:\(pair.port)")
        let third = try await pair.session.transfer(Request(.post, pair.url("/third"), body: .text("body"))).response()
        #expect(third.value == Data("POST /third body".utf8) && third.metrics.isConnectionReused)
        #expect(try pair.udp.requests() == ["GET /second 1", "POST /third 1"])
    }

    @Test func requestsShareAConnection() async throws {
        let pair = try pair()
        _ = try await pair.session.data(for: Request(pair.url("/")))
        _ = try await pair.session.data(for: Request(pair.url("/warm")))
        try await (0..<40).forEachConcurrent(limit: 20) { number in
            let length = number * 1000
            let (data, _) = try await pair.session.data(for: Request(pair.url("/size/\(length)")))
            #expect(data == Data(repeating: UInt8(ascii: "x"), count: length))
        }
        #expect(Set(try pair.udp.requests().compactMap { $0.split(separator: " ").last }) == ["1"])
        let (data, _) = try await pair.session.data(for: Request(pair.url("/unknown-length")))
        #expect(data == Data("GET /unknown-length ".utf8))
        let pool = await pair.session.pool
        #expect(pool.open == 1 && pool.idle == 1)
    }

    @Test func serverIsEvaluatedOverQUIC() async throws {
        let count = Lock(0)
        let pair = try pair { authority in
            CustomTrust(id: "first", roots: try .only(Certificate.all(pem: authority.certificatePEM))) {
                peer throws(TrustFailure) in
                try peer.requireValid()
                // The first handshake is the one over TCP.
                let isFirst = count.withLock { count in
                    count += 1
                    return count == 1
                }
                if !isFirst { throw TrustFailure(TrustFailure.Rule(rawValue: "second"), "not the first handshake") }
            }
        }
        _ = try await pair.session.data(for: Request(pair.url("/")))
        // The request fails, or it is sent over TCP in a resumed TLS session.
        let response = try? await pair.session.transfer(Request(pair.url("/secret"))).response()
        #expect(response?.metrics.version != .http3)
        #expect(try pair.udp.requests().isEmpty, "no request is sent to a server that was refused")
    }

    @Test func cancellationEndsAStream() async throws {
        let pair = try pair()
        _ = try await pair.session.data(for: Request(pair.url("/")))
        let transfer = pair.session.transfer(Request(pair.url("/size/8000000")))
        var received = 0
        for try await chunk in transfer.bytes {
            received += chunk.count
            break
        }
        #expect(received > 0)
        transfer.cancel()
        let (data, _) = try await pair.session.data(for: Request(pair.url("/after")))
        #expect(data == Data("GET /after ".utf8))
    }

    @Test func silentUDPFallsBackToTCP() async throws {
        let authority = try TestAuthority()
        let port = Lock<UInt16>(0)
        let server = try MockServer(tls: authority.issue()) { _ in
            .text("over TCP").field("Alt-Svc", "h3=\":\(port.withLock { $0 })\"").closing()
        }
        port.withLock { $0 = server.port }
        let session = Session(trust: try CustomRoots(pem: authority.certificatePEM)) { $0.http.version = .http3 }
        for reason in ["the server has not announced HTTP/3", "another connection was open or was opened sooner"] {
            let response = try await session.transfer(Request(server.url())).response()
            #expect(response.value == Data("over TCP".utf8) && response.metrics.withoutHTTP3 == reason)
        }
    }

    @Test func otherRequestsStayOverTCP() async throws {
        let pair = try pair()
        _ = try await pair.session.data(for: Request(pair.url("/")))
        let own = try await pair.session.transfer(Request(pair.url("/own"), options: [.connection(.own)])).response()
        #expect(own.metrics.withoutHTTP3?.contains("of its own") == true)
        let server = try MockServer { _ in .text("ok") }
        let plain = try await pair.session.transfer(Request(server.url())).response()
        #expect(plain.metrics.withoutHTTP3 == "HTTP/3 requires https")
    }
}
