// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// A source of the elements of one body for one reader.
protocol ElementReader: AnyObject, Sendable {
    func next() async throws(NetworkError) -> TransferElement?
}

extension BodyReader: ElementReader {}

/// The one reader of a transfer's body: its first step claims the body, and its early release cancels the transfer.
final class TransferReader: ElementReader {
    private enum Stage {
        case fresh
        /// Reads the attempt of a direct transfer, which may turn out to be a redirect.
        case direct(Attempt)
        case driven(Drive)
        /// Reads the response, beginning with its head unless that was already delivered.
        case body(BodyReader, head: ResponseHead?)
        case ended(NetworkError?)
    }

    private struct State {
        var stage = Stage.fresh
        var isAsked = false
    }

    private let token: TransferToken
    private let withProgress: Bool
    private let state = Lock(State())

    init(_ token: TransferToken, withProgress: Bool) {
        self.token = token
        self.withProgress = withProgress
    }

    deinit {
        // A download's file may have other readers; do not cancel it.
        if token.run.download != nil { return }
        switch state.withLock({ $0.stage }) {
        case .direct, .driven, .body:
            token.run.recordReaderError(by: .cancelled(.receiving, token.run.request))
            token.run.cancel()
        case .fresh, .ended: break
        }
    }

    /// Returns the next element; nil at the end, and the same error again after an error.
    func next() async throws(NetworkError) -> TransferElement? {
        let (isTaken, stage) = state.withLock { state in
            defer { state.isAsked = true }
            return (state.isAsked, state.stage)
        }
        if isTaken { throw .secondReader(of: token.run.request) }
        defer { state.withLock { $0.isAsked = false } }
        do throws(NetworkError) {
            if let element = try await element(stage) { return element }
            move(to: .ended(nil))
            await token.run.host.waitForRecorders()
            return nil
        } catch {
            fail(error)
            await token.run.host.waitForRecorders()
            throw error
        }
    }

    private func fail(_ error: NetworkError) {
        let hadBody = state.withLock { state in
            defer { state.stage = .ended(error) }
            switch state.stage {
            case .direct, .driven, .body: return true
            case .fresh, .ended: return false
            }
        }
        if hadBody { token.run.recordReaderError(by: error) }
    }

    private func move(to stage: Stage) { state.withLock { $0.stage = stage } }

    private func element(_ stage: Stage) async throws(NetworkError) -> TransferElement? {
        switch stage {
        case .fresh:
            let attempt = try token.run.claimStream(withProgress: withProgress)
            let stage = attempt.map { Stage.direct($0) } ?? .driven(token.run.drive())
            move(to: stage)
            return try await element(stage)
        case .direct(let attempt): return try await direct(attempt)
        case .driven(let drive): return try await driven(drive)
        case .body(let reader, let head): return try await body(reader, head)
        case .ended(let error):
            if let error { throw error }
            return nil
        }
    }

    private func direct(_ attempt: Attempt) async throws(NetworkError) -> TransferElement? {
        let element = try await attempt.reader.next(withProgress: withProgress)
        guard case .head(let head) = element,
            token.run.isProvisional(head)
        else { return element }
        let drive = token.run.drive(from: attempt)
        move(to: .driven(drive))
        return try await driven(drive)
    }

    /// Returns the elements that arrive before the response, then those of the response.
    private func driven(_ drive: Drive) async throws(NetworkError) -> TransferElement? {
        let run = token.run
        while true {
            let seen = run.signal.count
            let answer = drive.answer
            if let element = drive.takeElement() { return element }
            if let copy = run.download?.copy {
                let reader = try copy.body.take(for: copy.request, withProgress: withProgress)
                move(to: .body(reader, head: copy.head))
                return try await body(reader, copy.head)
            }
            if let answer {
                let response = try answer.get()
                let reader = try response.body.take(for: response.request, withProgress: withProgress)
                drive.forgetBody()
                move(to: .body(reader, head: response.head))
                return try await body(reader, response.head)
            }
            if await run.signal.wait(after: seen) { continue }
            // A cancelled reader cancels the transfer, and gets the resulting error.
            run.cancel()
            while drive.answer == nil {
                let seen = run.signal.count
                if drive.answer == nil { await run.signal.waitUncancelled(after: seen) }
            }
        }
    }

    private func body(_ reader: BodyReader, _ head: ResponseHead?) async throws(NetworkError) -> TransferElement? {
        guard let head else { return try await reader.next() }
        if reader.isHeadPassed {
            move(to: .body(reader, head: nil))
            return .head(head)
        }
        let element = try await reader.next()
        guard case .head = element else { return element }
        move(to: .body(reader, head: nil))
        return .head(head)
    }
}
