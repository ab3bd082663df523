// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// What a transfer needs of its session.
protocol TransferHost: AnyObject, Sendable {
    var loop: EventLoop { get }
    /// Rings when the session has closed and lets nothing continue.
    var closing: Signal { get }
    /// Who hears of all transfers; nil when nobody listens.
    var sink: (any TransferEventSink)? { get }
    /// Whether interceptors of the user's surround the request.
    func isIntercepted(_ request: Request) -> Bool
    /// Everything that surrounds the request, from the outside in.
    func interceptors(of request: Request) -> [any Interceptor]
    /// Whether a redirect may not be the end of the request.
    func followsRedirects(of request: Request) -> Bool
    /// Whether a first attempt that ended so may not be the end of the request.
    func mayRepeat(_ request: Request, after outcome: EngineTransfer.Outcome) -> Bool
    /// How failures of the request are repeated; nil when nobody has said so.
    func retryPolicy(of request: Request) -> RetryPolicy?
    func totalTimeout(of request: Request) -> Duration?
    func bodyLimit(of request: Request) -> ByteCount
    /// Waits until the session's observers have recorded every end that was told before.
    func endsRecorded() async
    /// A request made ready for the wire.
    ///
    /// - Parameters:
    ///   - place: Which of the transfer's attempts it is.
    /// - Throws: `NetworkError` of kind `invalidRequest`, or why the session can run nothing.
    func attempt(_ request: Request, at place: AttemptPlace) throws(NetworkError) -> Attempt
}

/// Which of a transfer's attempts one is.
struct AttemptPlace {
    /// The transfer.
    let id: UInt64
    /// From 1.
    let ordinal: Int
    /// Nanoseconds since the transfer was started.
    let offset: UInt64
    /// Whether it is a step of a transfer that is held, and so may come although the session closes.
    let continues: Bool
    /// What it has to know of the transfer's end; nil when that is its own.
    var course: TransferCourse?
    /// Whether its response goes into a file.
    var isSaved = false
}
