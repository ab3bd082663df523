// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Transfer: one run of a request (AFNetworking and URLSession say task), as users see it. Everything here is a view of
// one run; the engine does the work.

internal import CurlewEngine
internal import FoundationEssentials

/// One run of a request (AFNetworking and URLSession call it a task), which can be awaited, observed and streamed.
///
/// A transfer is cold: it starts when it is first awaited, iterated or `start()`ed, and it runs once. Its body is read
/// once, either collected (`value`, `response()`) or streamed (`stream`, `elements`, `bytes`); a second reader gets an
/// error. When the last copy, sequence and iterator of an unfinished transfer is released, the transfer is cancelled,
/// unless it was `start()`ed and is not paused.
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
    let lifetime: TransferLifetime
    private let output: @Sendable (Response<Data>) async throws(NetworkError) -> Output
    private let failure: @Sendable (NetworkError) -> NetworkError

    /// Creates a transfer.
    ///
    /// - Parameter failure: Converts an error of the run for the callers that await the output.
    init(
        _ lifetime: TransferLifetime, output: @escaping @Sendable (Response<Data>) async throws(NetworkError) -> Output,
        failure: @escaping @Sendable (NetworkError) -> NetworkError = { $0 }
    ) {
        self.lifetime = lifetime
        self.output = output
        self.failure = failure
    }

    /// The state of a transfer: idle → queued → running ⇄ paused → finished.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// The transfer has not been started.
        case idle
        /// The transfer was started and waits in the session's queue.
        case queued
        /// The transfer is running.
        case running
        /// The transfer was paused by `pause()`.
        case paused
        /// The transfer has ended, with or without success.
        case finished
    }

    /// The id of the transfer in this process.
    ///
    /// The id is unique, larger for later transfers, and stays the same across redirects and retries.
    public var id: UInt64 { run.id }

    /// The request.
    public var request: Request { run.request }

    /// The request's label.
    public var label: String? { run.request.options.label }

    /// The current state of the transfer.
    public var state: State { State(sameAs: run.visibleState) }

    var run: TransferRun { lifetime.run }

    // MARK: Control

    /// Starts the transfer and hands it to its session, which runs it to its end even without further references to it.
    ///
    /// - Returns: The same transfer.
    @discardableResult
    public func start() -> Transfer {
        run.detach()
        return self
    }

    /// Stops sending and receiving, but keeps the connection.
    ///
    /// The call has no effect on a finished transfer. Bytes in flight may still arrive, and the server may time out.
    /// `timeouts.total` and the waits of retries continue during a pause; the limits for idle time, head and rate do
    /// not. A transfer that is paused before its request is sent does not send it.
    public func pause() { run.pause() }

    /// Continues after `pause()`.
    public func resume() { run.resume() }

    /// Cancels the transfer: all waiting callers get `NetworkError(kind: .cancelled)`.
    ///
    /// Cancellation is a request: a transfer that ends at the same moment may still succeed.
    public func cancel() { run.cancel() }

    /// The priority of the transfer among those in the queue; it can be changed at any time.
    public var priority: Request.Priority {
        get { Request.Priority(rawValue: run.priority) }
        nonmutating set { run.priority = newValue.rawValue }
    }

    // MARK: Result

    /// The result; awaiting it starts the transfer.
    ///
    /// Awaiting it again gives the same result.
    ///
    /// A cancelled task stops waiting. If no other task waits, the transfer is cancelled, unless it was `start()`ed.
    /// - Throws: `NetworkError`: `.cancelled`, also when the reader of the body was cancelled or released before the
    ///   end; `.invalidRequest` (an invalid request, or a stream has taken the body); `.timedOut`; `.bodyTooLarge`;
    ///   `.truncatedEncoding`; `.corruptEncoding`; or any other error that ended the transfer, with its phase.
    public var value: Output {
        get async throws(NetworkError) { try await output(collected()) }
    }

    /// Starts the transfer and waits for the result with its head and metrics.
    ///
    /// - Returns: The response; a further call returns the same response.
    /// - Throws: The same errors as `value`.
    public func response() async throws(NetworkError) -> Response<Output> {
        let response = try await collected()
        return response.with(try await output(response))
    }

    private nonisolated(nonsending) func collected() async throws(NetworkError) -> Response<Data> {
        do throws(NetworkError) {
            let response = try await run.response()
            if run.session.recorder != nil { await run.session.waitForRecorders() }
            return response
        } catch {
            await run.session.waitForRecorders()
            throw failure(error)
        }
    }

    // MARK: Views of a running transfer

    /// The heads, progress, bytes and trailers in order, for one reader with back-pressure.
    ///
    /// The first pull starts the transfer, and leaving the loop early cancels it. Errors are `NetworkError`s. When the
    /// *consuming* task is cancelled between two elements, `AsyncThrowingStream` ends without an error; this is a
    /// property of the standard type. The transfer is cancelled then, and `value` throws `.cancelled`. `elements` and
    /// `bytes` throw `.cancelled` in every case; use them if the program must not mistake a truncated body for a
    /// complete one.
    public var stream: AsyncThrowingStream<TransferElement, any Error> {
        let reader = BodyReader(lifetime, withProgress: true)
        return AsyncThrowingStream { try await reader.nextElement() }
    }

    /// The same elements as those of `stream`, with typed errors, for one reader with back-pressure.
    ///
    /// The first pull starts the transfer, and leaving the loop early cancels it. A cancelled task gets
    /// `NetworkError(kind: .cancelled)`, never a silent end.
    public var elements: TransferSequence<TransferElement> {
        let lifetime = lifetime
        return TransferSequence { TransferElementReader(lifetime) }
    }

    /// The decoded bytes of the body, with typed errors, for one reader with back-pressure; the first pull starts the
    /// transfer.
    public var bytes: TransferBytes {
        let lifetime = lifetime
        return TransferBytes { BodyReader(lifetime, withProgress: false) }
    }

    /// The events of the transfer from now on, for any number of observers.
    ///
    /// Up to 256 events wait for each observer; beyond that the oldest ones are dropped and counted. The first pull
    /// starts the transfer, whose body is collected for `value` unless a stream has taken it. An observer that
    /// subscribes late first gets the current state, and every observer gets the end. Leaving the loop does not cancel
    /// the transfer.
    public var events: AsyncStream<TransferEvent> {
        let buffer = run.observe()
        let lifetime = lifetime
        return AsyncStream {
            lifetime.run.start()
            return await buffer.next()
        }
    }

    /// The progress of the transfer, for any number of observers; slow observers get only the latest value.
    ///
    /// The first pull starts the transfer, whose body is collected for `value` unless a stream has taken it.
    ///
    /// The sequence never throws. It ends after the last value, which is always delivered and whose `isFinished` states
    /// whether the transfer succeeded. Leaving the loop does not cancel the transfer.
    public var progress: AsyncStream<TransferProgress> {
        let observer = ProgressObserver(lifetime)
        return AsyncStream { await observer.next() }
    }

    /// The current progress; reading it does not start the transfer.
    public var currentProgress: TransferProgress {
        run.currentProgress
    }

    /// The metrics of the attempt that delivered the response, or of the last attempt.
    ///
    /// They are nil until the transfer has finished, when it made no attempt, and for a response that an interceptor
    /// made by hand.
    public var metrics: TransferMetrics? { run.metrics }
}
