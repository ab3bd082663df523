// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An event of a transfer, with its kind, time and attempt, but without bytes of a body.
///
/// The events of one attempt arrive in this order; each may be missing, and the order starts over after `restarted`:
///
/// ```text
/// transfer ┬ attempt 1 ┬ routed            a rule chose a proxy, or no proxy
///          │           ├ queued            waits for its turn
///          │           ├ resolved          the host's addresses are known
///          │           ├ connected         there is a connection, new or reused
///          │           ├ secured           the handshake of a new connection is done
///          │           ├ sent              the last byte of the request was written
///          │           ├ informational …   before the head, such as 103 Early Hints
///          │           ├ head              status and fields
///          │           ├ received          the body is complete
///          │           └ metrics           how the attempt went, also when it failed
///          ├ redirected                    or retried: another attempt follows
///          ├ attempt 2 ─ …
///          └ finished                      once, last
/// ```
///
/// `paused` and `resumed` arrive in between, when the user's calls take effect. An attempt that an interceptor has
/// abandoned may still produce events while the next attempt runs; the number of the attempt distinguishes them.
///
/// ```swift
/// for await event in transfer.events {
///     print(event.elapsed, event.attempt, event)
/// }
/// ```
public struct TransferEvent: Sendable {
    /// The kind of an event.
    public enum Kind: Sendable {
        /// The state of the transfer; the first event for an observer that subscribed after the start.
        case state(Transfer<Void>.State)
        /// A rule has chosen the proxy of the request, or that it has none; missing when no rule is about the request.
        case routed(Proxy.Choice)
        /// The request waits in the session's queue, usually for no time at all.
        case queued
        /// The host's addresses are known, or an open connection makes the lookup unnecessary.
        case resolved
        /// The request is about to be sent to an address such as "127.0.0.1:443", that of the proxy if there is one.
        case connected(remote: String, isReused: Bool)
        /// The TLS handshake of a new connection is complete: version, cipher suite, and whether a session was resumed.
        case secured(version: String, cipher: String, isResumed: Bool)
        /// The last byte of the request was written, with the size of its body; missing when the response arrived
        /// first.
        case sent(Int64)
        /// A response before the final one (RFC 9110 §15.2).
        case informational(ResponseHead)
        /// The head of the response, as it was received.
        case head(ResponseHead)
        /// The body of the response is complete, with its size as received, before decoding.
        case received(Int64)
        /// The transfer was paused.
        case paused
        /// The transfer was resumed.
        case resumed
        /// The engine sends the same request again, for example because a reused connection was stale.
        case restarted
        /// The response is a redirect, which a new attempt follows; the URL may hold secrets, which `description`
        /// leaves out.
        case redirected(Status, to: String)
        /// The attempt failed, or its response calls for a retry; another attempt follows after the given delay.
        case waiting(Duration, after: NetworkError)
        /// The session's cache has handled the request.
        case cached(HTTPCache.Report)
        /// An interceptor sends the request again, or a request in its place.
        case retried
        /// A downloaded file is complete at this path.
        case fileReady(String)
        /// The metrics of the attempt.
        case metrics(TransferMetrics)
        /// The transfer has ended, with an error if it failed; this is the last event.
        ///
        /// Errors in processing the received body, such as a failed decoding, are reported only to the body's reader.
        case finished(NetworkError?)
        /// The number of events before this one that were dropped, because the observer was too slow.
        case dropped(Int)
    }

    /// The transfer's id, the same as ``Transfer/id``.
    public let transfer: UInt64
    /// The request's label.
    public let label: String?
    /// The method of this attempt's request.
    public let method: Method
    /// The URL of this attempt's request; it may hold secrets, which `description` leaves out.
    public let url: String
    /// The number of the transfer's attempt, from 1; 0 before the first attempt.
    public let attempt: Int
    /// The time since the transfer was started.
    public let elapsed: Duration
    /// The kind of the event.
    public let kind: Kind

    /// Creates an event from its parts; it is public so that tests of observers can create events.
    public init(
        transfer: UInt64, label: String? = nil, method: Method = .get, url: String = "", attempt: Int = 1,
        elapsed: Duration = .zero, kind: Kind
    ) {
        self.transfer = transfer
        self.label = label
        self.method = method
        self.url = url
        self.attempt = attempt
        self.elapsed = elapsed
        self.kind = kind
    }

    /// Whether this is the last event of its transfer.
    public var isLast: Bool { if case .finished = kind { true } else { false } }

    func with(_ kind: Kind) -> TransferEvent {
        TransferEvent(
            transfer: transfer, label: label, method: method, url: url, attempt: attempt, elapsed: elapsed, kind: kind)
    }

    func with(elapsed: Duration) -> TransferEvent {
        TransferEvent(
            transfer: transfer, label: label, method: method, url: url, attempt: attempt, elapsed: elapsed, kind: kind)
    }
}

extension TransferEvent: CustomStringConvertible, CustomReflectable {
    /// A line such as "#7.1 GET https://host/path head 200 after 12 ms", redacted.
    public var description: String {
        let name = label.map { "#\(transfer).\(attempt) “\($0.escapingControls)”" } ?? "#\(transfer).\(attempt)"
        return "\(name) \(method.rawValue.escapingControls) \(redactedURL(url)) \(kind) after \(elapsed.brief)"
    }

    /// A mirror whose only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension TransferEvent.Kind: CustomStringConvertible {
    /// A few words, redacted.
    public var description: String {
        switch self {
        case .state(let state): "is \(state.rawValue)"
        case .routed(let choice): "routed: \(choice)"
        case .queued: "queued"
        case .resolved: "resolved"
        case .connected(let remote, let isReused): "connected to \(remote)" + (isReused ? ", reused" : "")
        case .secured(let version, let cipher, let isResumed):
            "secured with \(version) \(cipher)" + (isResumed ? ", resumed" : "")
        case .sent(let count): "sent \(ByteCount(count))"
        case .informational(let head): "informational \(head.status.code)"
        case .head(let head): "head \(head.status.code)"
        case .received(let count): "received \(ByteCount(count))"
        case .paused: "paused"
        case .resumed: "resumed"
        case .restarted: "restarted"
        case .redirected(let status, let url): "redirected by \(status.code) to \(redactedURL(url))"
        case .waiting(let time, let error): "waiting for \(time.brief) after \(error.code)"
        case .cached(let report): "handled by the cache: \(report)"
        case .retried: "retried"
        case .fileReady(let path): "the file \(path.escapingControls) is ready"
        case .metrics(let metrics): "metrics (\(metrics))"
        case .finished(nil): "finished"
        case .finished(let error?): "finished: \(error)"
        case .dropped(let count): "dropped \(count) events"
        }
    }
}
