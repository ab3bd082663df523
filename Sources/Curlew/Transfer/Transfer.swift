// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Transfer: one run of a request (AFNetworking and URLSession say task), as users hold it. Everything here is a view of
// one token; the work is the engine's.

internal import CurlewEngine
internal import FoundationEssentials

/// One run of a request (what AFNetworking and URLSession call a task): a value that can be awaited, watched and read.
///
/// A transfer is cold: it starts when it is first awaited, iterated or `start()`ed, and runs once. Its body is read
/// once, either collected (`value`, `response()`) or streamed (`stream`, `elements`, `bytes`); whoever asks second gets
/// a clear error. When the last copy, sequence and iterator of it goes away, an unfinished transfer is cancelled, unless it was
/// `start()`ed.
///
/// ```swift
/// let transfer = session.transfer("https://example.com/archive.tar")
/// for try await element in transfer.stream {
///     switch element {
///     case .head(let head): print(head.status)
///     case .progress(let progress): print(progress.fraction ?? 0)
///     case .bytes(let chunk): try file.write(contentsOf: Data(chunk))
///     default: break
///     }
/// }
/// ```
public struct Transfer<Output: Sendable>: Sendable, Identifiable {
    let token: TransferToken
    private let output: @Sendable (Response<Data>) async throws(NetworkError) -> Output
    private let failure: @Sendable (NetworkError) -> NetworkError

    /// - Parameter failure: What an error of the run means to whoever awaits the output.
    init(
        _ token: TransferToken, output: @escaping @Sendable (Response<Data>) async throws(NetworkError) -> Output,
        failure: @escaping @Sendable (NetworkError) -> NetworkError = { $0 }
    ) {
        self.token = token
        self.output = output
        self.failure = failure
    }

    /// Where a transfer stands: idle → queued → running ⇄ paused → finished.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// Not started.
        case idle
        /// Started and waiting for a place on the wire.
        case queued
        /// On the wire.
        case running
        /// Held back by `pause()`.
        case paused
        /// Over, with or without success.
        case finished
    }

    /// Names the transfer within this process.
    ///
    /// Unique, and larger for later ones; the same through redirects and repetitions.
    public var id: UInt64 { run.id }

    /// What was asked.
    public var request: Request { run.request }

    /// The request's label.
    public var label: String? { run.request.options.label }

    /// Where the transfer stands at this moment.
    public var state: State { State(run.standing) }

    private var run: TransferRun { token.run }

    // MARK: Orders

    /// Starts the transfer and hands it to its session, which runs it to its end even when nobody holds it any more.
    ///
    /// - Returns: The same transfer.
    @discardableResult
    public func start() -> Transfer {
        run.detach()
        return self
    }

    /// Stops moving bytes, both ways, while keeping the connection.
    ///
    /// Does nothing to a finished transfer. Bytes on their way may still arrive; the server may lose patience. The
    /// idle timeout stands still. A transfer paused before it is on the wire stays off it.
    public func pause() { run.pause() }

    /// Goes on after `pause()`.
    public func resume() { run.resume() }

    /// Ends the transfer: whoever waits for it gets `NetworkError(kind: .cancelled)`.
    ///
    /// A request, not an outcome: a transfer that ends at the same moment may still succeed.
    public func cancel() { run.cancel() }

    /// How soon the transfer gets a place on the wire, compared with others that wait; can be changed at any time.
    public var priority: Request.Priority {
        get { Request.Priority(rawValue: run.priority) }
        nonmutating set { run.priority = newValue.rawValue }
    }

    // MARK: The end

    /// The result, awaited; starts the transfer.
    ///
    /// Awaiting again gives the same result.
    ///
    /// Cancelling the task that waits withdraws it, and cancels the transfer when no other task waits.
    /// - Throws: `NetworkError`: `.cancelled`, also when the reader of the body was cancelled or dropped before the
    ///   end; `.invalidRequest` (an invalid request, or a stream has taken the body); `.timedOut`; `.bodyTooLarge`;
    ///   `.truncatedEncoding`; `.corruptEncoding`; or any other error that ended the transfer, with its phase.
    public var value: Output {
        get async throws(NetworkError) { try await output(collected()) }
    }

    /// The result with its head and metrics, awaited; starts the transfer.
    ///
    /// - Returns: The response; awaiting again gives the same one.
    /// - Throws: As `value` does.
    public func response() async throws(NetworkError) -> Response<Output> {
        let response = try await collected()
        return Response(
            head: response.head, value: try await output(response), metrics: response.metrics,
            trailers: response.trailers)
    }

    private func collected() async throws(NetworkError) -> Response<Data> {
        do throws(NetworkError) {
            let response = try await run.response()
            await run.host.endsRecorded()
            return response
        } catch {
            await run.host.endsRecorded()
            throw failure(error)
        }
    }

    // MARK: Views while it runs

    /// Heads, progress, bytes and trailers in order, pulled by one reader with back-pressure; starts at the first pull.
    ///
    /// Leaving the loop early cancels the transfer. Errors are `NetworkError`s. One property of the standard type: when
    /// the *consuming* task is cancelled between two elements, `AsyncThrowingStream` ends without an error. The transfer
    /// is cancelled then, and `value` throws `.cancelled`. `elements` and `bytes` throw `.cancelled` in every case; use
    /// them where a short body must not pass for a whole one.
    public var stream: AsyncThrowingStream<TransferElement, any Error> {
        let reader = TransferReader(token, withProgress: true)
        return AsyncThrowingStream { try await reader.next() }
    }

    /// The same elements as those of `stream`, with a typed error; one reader, back-pressure, starts at the first pull.
    ///
    /// Leaving the loop early cancels the transfer. A cancelled task gets `NetworkError(kind: .cancelled)`, never a silent
    /// end.
    public var elements: TransferSequence<TransferElement> {
        let token = token
        return TransferSequence { StepReader(token) }
    }

    /// The bytes of the body alone, decoded, with a typed error; one reader, back-pressure, starts at the first pull.
    public var bytes: TransferBytes { TransferBytes(token) }

    /// What happens to the transfer, from now on: any number of observers, each with up to 256 events that wait, then the
    /// oldest are dropped and counted.
    ///
    /// The first pull starts the transfer, whose body is collected for `value` unless a stream has taken it. An observer
    /// that comes late hears first how the transfer stands, and the end in every case. Leaving it does not cancel the
    /// transfer.
    public var events: AsyncStream<TransferEvent> {
        let buffer = run.observe()
        let token = token
        return AsyncStream {
            token.run.beginWatched()
            return await buffer.next()
        }
    }

    /// How far the transfer is: the newest value only, and always the last one.
    ///
    /// Any number of observers; starts the transfer, whose body is collected for `value` unless a stream has taken it.
    ///
    /// Never throws: it ends after the last value, whose `isFinished` says whether the transfer succeeded. Leaving it
    /// does not cancel the transfer.
    public var progress: AsyncStream<TransferProgress> {
        let observer = ProgressObserver(token)
        return AsyncStream { await observer.next() }
    }

    /// The progress at this moment, without starting anything.
    public var currentProgress: TransferProgress {
        run.currentProgress
    }

    /// What was measured, nil until the transfer has finished or when it never started.
    public var metrics: TransferMetrics? { run.metrics }
}

extension Transfer.State {
    init(_ state: Lifecycle.State) {
        self =
            switch state {
            case .idle: .idle
            case .queued: .queued
            case .running: .running
            case .paused: .paused
            case .finished: .finished
            }
    }
}

extension TransferProgress {
    /// What a transfer shows that could never start.
    static var refused: TransferProgress {
        TransferProgress()
    }
}
