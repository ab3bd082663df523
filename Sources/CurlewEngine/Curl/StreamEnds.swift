// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// Records for transfers whether the server has ended their HTTP/2 streams, which libcurl does not report.
///
/// nghttp2 identifies a stream by a pointer that libcurl chooses: the CURL until at least 8.14, an internal object in
/// 8.23. The pointer is therefore never dereferenced. It belongs to the handle whose request libcurl has just announced
/// (`requestIsNext`), since the stream begins in the same call.
final class StreamEnds {
    private var handles: [UnsafeMutableRawPointer: EasyHandle] = [:]
    /// Called with the nghttp2 session of a connection whose peer has answered a PING.
    var didAnswer: ((UnsafeMutableRawPointer) -> Void)?
    /// The handle whose request is sent next.
    private var sender: EasyHandle?

    /// Watches the streams of the calling thread, which must be the loop's, until `stop`.
    func start() {
        withUnsafePointer(to: streamCalls) { curlew_watch_streams($0, Unmanaged.passUnretained(self).toOpaque()) }
    }

    func stop() { curlew_watch_streams(nil, nil) }

    /// Records that the next stream to begin belongs to a handle.
    func expect(_ handle: EasyHandle) {
        forget(handle)
        sender = handle
    }

    /// Forgets a handle's stream, or that it was about to begin.
    func forget(_ handle: EasyHandle) {
        if sender === handle { sender = nil }
        guard let stream = handle.stream else { return }
        handle.stream = nil
        // The pointer may already identify the stream of another handle.
        if handles[stream] === handle { handles[stream] = nil }
    }

    fileprivate func begin(_ stream: UnsafeMutableRawPointer, of session: UnsafeMutableRawPointer?) {
        guard let handle = sender else { return }
        sender = nil
        if let session { handle.transport.recordSession(session, of: handle) }
        handle.stream = stream
        handles[stream] = handle
    }

    fileprivate func note(_ stream: UnsafeMutableRawPointer, isEnd: Bool) {
        handles[stream]?.loopState?.pointee.isStreamEnded = isEnd
    }
}

/// The functions called before libcurl's own nghttp2 callbacks, on the loop thread like all code of libcurl.
private let streamCalls = curlew_stream_callbacks(
    submitted: { context, session, stream in
        if let stream { ends(context)?.begin(stream, of: session) }
    },
    answered: { context, session in
        if let session { ends(context)?.didAnswer?(session) }
    },
    received: { context, stream, isEnd in
        if let stream { ends(context)?.note(stream, isEnd: isEnd) }
    })

private func ends(_ context: UnsafeMutableRawPointer?) -> StreamEnds? {
    context.map { Unmanaged<StreamEnds>.fromOpaque($0).takeUnretainedValue() }
}
