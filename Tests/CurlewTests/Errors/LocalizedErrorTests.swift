// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Foundation
import Testing

@testable import Curlew
@testable import CurlewAuth

/// `localizedDescription` is the message, and for a timeout it has the limit.
@Suite(.timeLimit(.minutes(5)))
struct LocalizedErrorTests {
    /// Checks the description and the recovery suggestion of an error.
    private func expect(
        _ error: any Error, _ description: String, _ suggestion: String? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(error.localizedDescription == description, sourceLocation: location)
        #expect((error as? any LocalizedError)?.errorDescription == description, sourceLocation: location)
        #expect((error as? any LocalizedError)?.recoverySuggestion == suggestion, sourceLocation: location)
    }

    @Test func networkErrorsShowMessageAndHint() {
        let request = Request(.post, "https://u:pw@h/?token=s3cret", fields: ["Authorization": "Bearer s3cret"])
        let error = NetworkError(
            .connectionLost, phase: .sending, "The line\nis gone.", hint: "Look\tthere.", request: request)
        expect(error, "The line\\nis gone.", "Look\\tthere.")
        expect(NetworkError(.cancelled, phase: .queued, "Stopped."), "Stopped.")
    }

    @Test func apiErrorsShowTheMessageOfTheNetworkError() {
        let below = NetworkError(.unacceptableStatus, phase: .validating, "The server answered 422.", hint: "Ask anew.")
        expect(APIError<String>.failed(below), "The server answered 422.", "Ask anew.")
        expect(APIError<String>.rejected("s3cret", below), "The server answered 422.", "Ask anew.")
    }

    @Test func errorsOfCausesShowMessageAndHint() {
        expect(TrustFailure(.pin, "No key is pinned.", hint: "Pin one."), "No key is pinned.", "Pin one.")
        expect(
            TrustFailure.InvalidPolicy("It is no certificate.", hint: "Give PEM."), "It is no certificate.", "Give PEM."
        )
        expect(Credential.Invalid.colonInUser, Credential.Invalid.colonInUser.description)
        expect(InvalidNetrc(3, .notUTF8), "Line 3 is not UTF-8.")
        expect(
            DownloadDestination.Failure(.busy, "/tmp/x", "in use by another download"), "In use by another download.",
            "Wait for the other download of this file, or choose another name.")
        expect(DownloadDestination.Failure(.other, "/tmp/x", "it broke"), "It broke.")
        expect(
            OAuth2Error(code: .invalidClient, message: "unknown", page: nil), "invalid_client: unknown",
            "Check id and secret, or try another proof (.body).")
    }

    @Test func testingErrorsShowTheirDescription() throws {
        let server = try MockServer { _ in .text("x") }
        var options = MockServer.Options()
        options.port = server.port
        let refused = #expect(throws: TestingError.self) { try MockServer(options: options) }
        #expect(refused?.localizedDescription == refused?.description && refused?.description.isEmpty == false)
    }

    // MARK: Timeouts

    private static let request = Request("https://h/")
    private static let own = Request(
        "https://h/",
        options: .timeouts(
            Timeouts(
                connect: .seconds(1), responseHead: nil, idle: nil, total: nil, queue: nil, minimumRate: nil)))
    private static let timed = Request("https://h/", options: .timeout(.seconds(9)))

    static let limits: [(TransferLimits.Kind, String)] = [
        (.connect, "No connection was made within 1.5 s (`@connect`@@)."),
        (.head, "No response head arrived within 1.5 s (`@responseHead`@@)."),
        (.idle, "No byte was sent or received for 1.5 s (`@idle`@@)."),
        (.slow(bytes: 2048), "Fewer than 2 KiB were transferred within 1.5 s (`@minimumRate`@@)."),
        (.total, "The transfer took longer than 1.5 s (`@total`@@)."),
    ]

    @Test(arguments: limits.indices) func timeoutsNameTheirLimitAndOption(_ index: Int) {
        let (limit, text) = Self.limits[index]
        let failure = EngineFailure(.timedOut(limit, after: 1_500_000_000), phase: .waiting)
        func words(_ option: String, _ owner: String) -> String {
            text.replacingOccurrences(of: "@@", with: owner).replacingOccurrences(of: "@", with: option)
        }
        let ofSession = NetworkError(failure, request: Self.request)
        #expect(ofSession.localizedDescription == words("timeouts.", " of the session"))
        #expect(ofSession.recoverySuggestion?.isEmpty == false)
        #expect(NetworkError(failure, request: Self.own).localizedDescription == words("options.timeouts.", ""))
        let timed = NetworkError(failure, request: Self.timed).localizedDescription
        if case .total = limit {
            #expect(timed == "The transfer took longer than 1.5 s (`options.timeouts.total`).")
        } else {
            #expect(timed == words("timeouts.", " of the session"))
        }
    }

    @Test func unknownTimeoutLengthIsOmitted() {
        #expect(
            NetworkError.totalTimeoutMessage(of: nil, after: nil)
                == "The transfer took longer than `timeouts.total` of the session.")
    }

    /// The request after a redirect has less time left; the error names the whole limit.
    @Test func totalTimeoutAfterARedirectNamesTheWholeLimit() async throws {
        let gate = Gate()
        let server = try MockServer { request in
            request.path == "/" ? .status(302).field("Location", "/on") : .text("x").fault(.stall(gate), at: .start)
        }
        var request = Request(server.url("/"))
        request.options.timeouts.total = .milliseconds(700)
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .timedOut)
        #expect(error.localizedDescription == "The transfer took longer than 700 ms (`options.timeouts.total`).")
        gate.open()
    }

    @Test func queueTimeoutNamesItsLimitAndOption() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session {
            $0.limits.connectionsPerHost = 1
            $0.timeouts.queue = .milliseconds(100)
        }
        let holder = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(
            error.localizedDescription.hasPrefix(
                "The transfer waited longer than 100 ms (`timeouts.queue` of the session): 1 of 1 slots"))
        gate.open()
        _ = try await holder.value
    }

    // MARK: TLS with a server of plain HTTP

    @Test(arguments: ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n"])
    func httpsToAPlainHTTPPortIsExplained(_ answer: String) async throws {
        var options = MockServer.Options()
        options.onAccept = { _ in [.send(Array(answer.utf8)), .close] }
        let server = try MockServer(options: options) { _ in .text("x") }
        let session = Session(trust: InsecureTrust(reason: "test"))
        let error = try await networkError { try await session.data(for: Request("https://127.0.0.1:\(server.port)/")) }
        #expect(error.kind == .tlsFailed && error.phase == .securing, "\(error)")
        #expect(error.localizedDescription.contains("plain HTTP"), "\(error)")
        #expect(error.recoverySuggestion?.contains("Use http://") == true)
        #expect(error.retriability == .never)
    }
}
