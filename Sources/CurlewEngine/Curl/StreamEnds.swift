// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// Tells transfers whether the server has ended their HTTP/2 streams, which libcurl does not pass on.
///
/// nghttp2 knows a stream by a pointer of libcurl's choice: the CURL up to 8.14 at least, something of its own in 8.23. So
/// the pointer is never followed. It belongs to the handle whose request libcurl has just announced (`requestIsNext`),
/// since the stream begins in the same call.
final class StreamEnds {
    private var handles: [UnsafeMutableRawPointer: EasyHandle] = [:]
    /// Whose request comes next.
    private var sender: EasyHandle?

    /// Watches the streams of the calling thread, which is the loop's, until `stop`.
    func start() {
        withUnsafePointer(to: streamCalls) { curlew_watch_streams($0, Unmanaged.passUnretained(self).toOpaque()) }
    }

    func stop() { curlew_watch_streams(nil, nil) }

    /// Expects that a handle's stream is the next one that begins.
    func expect(_ handle: EasyHandle) {
        forget(handle)
        sender = handle
    }

    /// Forgets a handle's stream, or that it was to begin.
    func forget(_ handle: EasyHandle) {
        if sender === handle { sender = nil }
        guard let stream = handle.stream else { return }
        handle.stream = nil
        // The pointer may be another stream's by now.
        if handles[stream] === handle { handles[stream] = nil }
    }

    fileprivate func begin(_ stream: UnsafeMutableRawPointer) {
        guard let handle = sender else { return }
        sender = nil
        handle.stream = stream
        handles[stream] = handle
    }

    fileprivate func note(_ stream: UnsafeMutableRawPointer, isEnd: Bool) {
        handles[stream]?.wire?.pointee.isStreamEnded = isEnd
    }
}

/// What nghttp2's functions call in front of libcurl; on the loop thread, as everything that libcurl does.
private let streamCalls = curlew_stream_calls(
    submitted: { context, stream in
        if let stream { ends(context)?.begin(stream) }
    },
    received: { context, stream, isEnd in
        if let stream { ends(context)?.note(stream, isEnd: isEnd) }
    })

private func ends(_ context: UnsafeMutableRawPointer?) -> StreamEnds? {
    context.map { Unmanaged<StreamEnds>.fromOpaque($0).takeUnretainedValue() }
}
