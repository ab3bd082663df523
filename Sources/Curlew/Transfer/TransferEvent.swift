// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Something that happened to a transfer: what, when, and in which of its attempts; never a byte of a body.
///
/// Of one attempt, the events come in this order; each may be missing, and the order begins anew after `restarted`:
///
/// ```text
/// transfer ┬ attempt 1 ┬ queued            waits for its turn
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
/// `paused` and `resumed` come in between, where the user's orders took effect. An attempt that an interceptor has
/// abandoned may still be told about while the next one runs; its number tells them apart.
///
/// ```swift
/// for await event in transfer.events {
///     print(event.elapsed, event.attempt, event)
/// }
/// ```
public struct TransferEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// How the transfer stood when its observer came late: the first event then.
        case state(Transfer<Void>.State)
        /// The request waits for its turn under the session's limits, mostly for no time at all.
        case queued
        /// The host's addresses are known, or an open connection needs none.
        case resolved
        /// The request is about to be sent to an address, "127.0.0.1:443", the proxy's if there is one.
        case connected(remote: String, isReused: Bool)
        /// TLS is spoken over the new connection: version, cipher suite, and whether an earlier session was resumed.
        case secured(version: String, cipher: String, isResumed: Bool)
        /// The last byte of the request was written; with the bytes of its body. Left out when the answer came first.
        case sent(Int64)
        /// A response before the final one (RFC 9110 §15.2).
        case informational(ResponseHead)
        /// The head of the response, as it was received.
        case head(ResponseHead)
        /// The body of the response is complete; with its bytes as they were on the wire.
        case received(Int64)
        /// The transfer was paused, and stands still.
        case paused
        /// The transfer goes on.
        case resumed
        /// The same request is sent over another connection, since the first was stale.
        case restarted
        /// The response led elsewhere, and a new attempt goes there; the URL may hold secrets, which `description` leaves
        /// out.
        case redirected(Status, to: String)
        /// The attempt failed, or its response is to be asked for again; another attempt follows after so long.
        case waiting(Duration, after: NetworkError)
        /// An interceptor has the request, or one in its place, sent again.
        case retried
        /// A downloaded file has its name, which is this path.
        case fileReady(String)
        /// How the attempt went.
        case metrics(TransferMetrics)
        /// The transfer is over, without success if there is an error; nothing comes after it.
        ///
        /// What happens to a body after the wire (that it cannot be decoded, say) is told to its reader alone.
        case finished(NetworkError?)
        /// So many events before this one were dropped, because the observer was too slow.
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
    /// Which of the transfer's requests on the wire this is about, from 1; 0 before the first.
    public let attempt: Int
    /// The time since the transfer was started.
    public let elapsed: Duration
    /// What happened.
    public let kind: Kind

    /// An event of its parts; public so that tests of observers can make one.
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
    /// One line such as "#7.1 GET https://host/path head 200 after 12 ms", redacted.
    public var description: String {
        let name = label.map { "#\(transfer).\(attempt) “\($0.escapingControls)”" } ?? "#\(transfer).\(attempt)"
        return "\(name) \(method.rawValue.escapingControls) \(redactedURL(url)) \(kind) after \(elapsed.brief)"
    }

    /// The line alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension TransferEvent.Kind: CustomStringConvertible {
    /// A few words, redacted.
    public var description: String {
        switch self {
        case .state(let state): "is \(state.rawValue)"
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
        case .retried: "retried"
        case .fileReady(let path): "the file \(path.escapingControls) is ready"
        case .metrics(let metrics): "metrics (\(metrics))"
        case .finished(nil): "finished"
        case .finished(let error?): "finished: \(error)"
        case .dropped(let count): "dropped \(count) events"
        }
    }
}
