// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Transfer: one run of one request. A plan is what libcurl must know; EngineTransfer is the run, half of it behind a
// lock for whoever waits, half of it touched by the loop alone; Slab, CollectedBody and UploadPipe carry the bytes.

/// Everything the engine must know to run one request, in plain values made by the caller's thread.
///
/// It is never copied, since it has many parts and goes through many hands.
package struct TransferPlan: ~Copyable, Sendable {
    /// What is sent after the head.
    package enum Upload: Sendable {
        case none
        /// Bytes at hand; sent again when a stale connection makes libcurl start over.
        case bytes([UInt8])
        /// Bytes that a producer pushes while the transfer runs.
        case pipe(UploadPipe)

        /// How many bytes there are, -1 when nobody knows.
        var length: Int64 {
            switch self {
            case .none: 0
            case .bytes(let bytes): Int64(bytes.count)
            case .pipe(let pipe): pipe.length ?? -1
            }
        }
    }

    /// Another way to say the same, for a server that refuses this one.
    package struct Alternative: Sendable {
        package var lines: HeaderLines
        package var upload: Upload
        package var asksFirst: Bool

        package init(lines: HeaderLines, upload: Upload, asksFirst: Bool) {
            self.lines = lines
            self.upload = upload
            self.asksFirst = asksFirst
        }
    }

    package var method: String
    package var target: PlannedURL
    package var lines: HeaderLines
    package var upload: Upload
    /// The body as it is and the lines for it, when `upload` is compressed and its source can be read again.
    package var alternative: Alternative?
    package var trust: TrustDomain
    /// Nanoseconds; nil never fires.
    package var connectTimeout: UInt64?
    package var headTimeout: UInt64?
    package var idleTimeout: UInt64?
    package var totalTimeout: UInt64?
    package var queueTimeout: UInt64?
    /// The fewest bytes of bodies that must move, both ways together, in so many nanoseconds.
    package var slowest: (bytes: Int64, within: UInt64)?
    package var bandwidth = Bandwidth()
    /// How long the server may take to say that it wants the body, in nanoseconds; then it is sent anyway.
    package var continueTimeout: UInt64 = 1_000_000_000
    /// Whether the body waits until the server has said that it wants it.
    package var asksFirst = false
    /// Whether no other transfer may use its connection, before or after.
    package var ownsConnection = false
    /// Whether it is sent again, whatever its method, when a reused connection ends before a byte of the answer.
    package var resends = false
    /// Most bytes a collected body may have.
    package var collectLimit: Int
    package var headLimit: Int
    /// Most fields that heads and trailers may have together.
    package var fieldLimit = 1000
    package var priority: Int
    /// Whether it belongs to something held, so that it is accepted while the loop closes gracefully.
    package var continues = false
    /// Whether the engine takes a hold when the answer names another place to ask.
    package var holdsRedirects = false
    package var label: String?
    /// Whether the response goes into a file.
    package var isSaved = false
    /// The name that the runs of one transfer share; 0 for a run that is a transfer of its own.
    package var transfer: UInt64 = 0
    /// Whether somebody may want to know what was measured; of a failure it is known in any case.
    package var isMeasured = true
    /// Which of the runs of its transfer it is, from 1, and how many nanoseconds after the transfer's start.
    package var ordinal = 1
    package var offset: UInt64 = 0
    /// Tells a run that is only a step whether its transfer is over.
    package var course: TransferCourse?

    package var url: String { target.text }
    package var host: String { target.host }
    package var port: UInt16 { target.port }
    package var isSecure: Bool { target.isSecure }

    /// Whether sending it twice does the same as sending it once (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        switch method {
        case "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE": true
        default: false
        }
    }

    /// How long a limit is, in nanoseconds, counted from the start of the transfer for the total; 0 where there is none.
    func length(of limit: EngineFailure.Limit) -> UInt64 {
        switch limit {
        case .connect: connectTimeout ?? 0
        case .head: headTimeout ?? 0
        case .idle: idleTimeout ?? 0
        case .slow: slowest?.within ?? 0
        case .total: totalTimeout.map { $0 &+ offset } ?? 0
        }
    }

    /// Whether it is sent again when a reused connection ends before a byte of the answer.
    package var isResent: Bool { isIdempotent || resends }

    package init(
        method: String, target: PlannedURL, lines: HeaderLines, upload: Upload, trust: TrustDomain,
        collectLimit: Int = 64 << 20, headLimit: Int = 256 << 10,
        priority: Int = 0, label: String? = nil
    ) {
        self.method = method
        self.target = target
        self.lines = lines
        self.upload = upload
        self.trust = trust
        self.collectLimit = collectLimit
        self.headLimit = headLimit
        self.priority = priority
        self.label = label
    }
}

extension TransferPlan {
    /// A plan for a URL that is not used again.
    package init(
        method: String, url: String, host: String, port: UInt16, isSecure: Bool, lines: HeaderLines,
        upload: Upload, trust: TrustDomain, collectLimit: Int = 64 << 20, headLimit: Int = 256 << 10,
        priority: Int = 0, label: String? = nil
    ) {
        self.init(
            method: method, target: PlannedURL(url, host: host, port: port, isSecure: isSecure), lines: lines,
            upload: upload, trust: trust, collectLimit: collectLimit, headLimit: headLimit, priority: priority,
            label: label)
    }
}
