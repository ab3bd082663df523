// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

// Operations that libcurl 7.88 does not do by itself over HTTP/2.
extension EasyHandle {
    /// Sends the RST_STREAM that libcurl 7.88 holds back for a connection without transfers.
    ///
    /// The handle has just been removed from its own transfer. It joins the idle connection and aborts before it sends
    /// a request.
    /// - Parameters:
    ///   - port: The connection's local port, as the socket table stores it.
    /// - Returns: False if libcurl has closed the connection or chosen another one.
    ///   - url: A URL of the connection's server, for a handle that was not just used with one.
    func flush(over port: Int, to url: ParsedURL? = nil) -> Bool {
        transfer = nil
        if let url { selectConnections(to: url) }
        if isFresh {
            isFresh = false
            _ = curlew_set_long(curl, CURLOPT_FRESH_CONNECT, 0)
        }
        flushing = (port, false)
        defer { flushing = nil }
        guard curl_multi_add_handle(domain.multi, curl) == CURLM_OK else { return false }
        domain.fireIfDue(now: clock.pointee)
        curl_multi_remove_handle(domain.multi, curl)
        return flushing?.isDone == true
    }

    /// Called for a handle without a transfer, right before it would send a request over a connection.
    func joined(over port: Int) {
        guard flushing?.port == port else { return }
        // Toggling the pause state makes libcurl flush the pending frames.
        curl_easy_pause(curl, CURLPAUSE_SEND)
        curl_easy_pause(curl, CURLPAUSE_CONT)
        flushing?.isDone = true
    }

    // MARK: GOAWAY

    /// Whether the server reported with GOAWAY that it does not process the request (RFC 9113 §6.8); false if libcurl's
    /// messages were not recorded.
    var isExcludedByGoAway: Bool {
        guard isRecording, let messages = streamMessages?.pointee else { return false }
        return messages.has_goaway && messages.stream > messages.last
    }

    /// Records libcurl's messages about the stream of the request, from now until the head arrives.
    func recordMessages() {
        let memory = streamMessages ?? .allocate(capacity: 1)
        memory.initialize(to: curlew_stream_log())
        streamMessages = memory
        isRecording = true
        curlew_log_streams(curl, memory)
    }

    func stopRecording() {
        guard isRecording else { return }
        isRecording = false
        curlew_log_streams(curl, nil)
    }
}
