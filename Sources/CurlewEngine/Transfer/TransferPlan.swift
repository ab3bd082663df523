// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Transfer: one run of one request. A plan holds the settings that libcurl needs. EngineTransfer is the run: one half
// is behind a lock for waiting callers, the other half belongs to the loop. Slab, CollectedBody and UploadPipe carry
// the bytes.

/// The complete description of one run for the engine, in plain values created on the caller's thread.
///
/// The plan is noncopyable, because it has many fields and passes through many functions.
package struct TransferPlan: ~Copyable, Sendable {
    /// The request body.
    package enum Upload: Sendable {
        case none
        /// Bytes in memory; libcurl sends them again if it retries after a stale connection.
        case bytes([UInt8])
        /// Bytes that a producer pushes while the transfer runs.
        case pipe(UploadPipe)

        /// The number of bytes, or -1 if unknown.
        var length: Int64 {
            switch self {
            case .none: 0
            case .bytes(let bytes): Int64(bytes.count)
            case .pipe(let pipe): pipe.length ?? -1
            }
        }
    }

    /// Another representation of the same body, for a server that rejects the first one.
    package struct Alternative: Sendable {
        package var lines: HeaderLines
        package var upload: Upload
        package var expectsContinue: Bool

        package init(lines: HeaderLines, upload: Upload, expectsContinue: Bool) {
            self.lines = lines
            self.upload = upload
            self.expectsContinue = expectsContinue
        }
    }

    package var method: String
    package var target: PlannedURL
    package var lines: HeaderLines
    package var upload: Upload
    /// The uncompressed body with its header lines, if `upload` is compressed and its source can be read again.
    package var alternative: Alternative?
    package var trust: TrustDomain
    /// The object with the limits, which runs share unless their requests have limits of their own.
    package var sharedLimits: SharedLimits
    /// Whether the body waits until the server has accepted it with status 100.
    package var expectsContinue = false
    /// Whether no other transfer may use the connection, before or after this one.
    package var ownsConnection = false
    /// Whether the run only opens a connection and sends no request; it ends with the failure `connectedOnly`.
    package var connectsOnly = false
    /// Whether the run opens a new connection even if another one could be used.
    package var needsNewConnection = false
    /// Whether the request is retried, with any method, if a reused connection ends before a byte of the response.
    package var resends = false
    /// Whether the server announces HTTP/3 by Alt-Svc.
    package var offersHTTP3 = false
    package var priority: Int
    /// Whether the run continues a transfer that holds the loop, which accepts it while it closes gracefully.
    package var continues = false
    /// The object with the ends that the chain of interceptors must see; all others are final.
    package var sharedInterest: SharedInterest
    package var label: String?
    /// Whether the response is written to a file.
    package var isSaved = false
    /// The identifier that the runs of one transfer share; 0 for a run that is a transfer of its own.
    package var transfer: UInt64 = 0
    /// Whether the caller needs the measurements; a failed run has them in any case.
    package var isMeasured = true
    /// The number of the run within its transfer, from 1, and its start in nanoseconds after the transfer's start.
    package var ordinal = 1
    package var offset: UInt64 = 0

    package var url: String { target.text }
    package var host: String { target.host }
    package var port: UInt16 { target.port }
    package var isSecure: Bool { target.isSecure }

    /// Whether sending the request twice has the same effect as sending it once (RFC 9110 §9.2.2); false unless set.
    package var isIdempotent = false

    package var interest: ChainInterest {
        get { sharedInterest.values }
        set { sharedInterest = SharedInterest(newValue) }
    }

    /// The limits of the run.
    package var limits: TransferLimits { sharedLimits.values }

    /// The part of the total limit that is left at the start of the run, in nanoseconds; nil without a limit.
    package var remainingTotal: UInt64? { limits.total.map { $0 - min($0, offset) } }

    /// Whether the request is retried if a reused connection ends before a byte of the response.
    package var isRetriable: Bool { isIdempotent || resends }

    package init(
        method: String, target: PlannedURL, lines: HeaderLines, upload: Upload, trust: TrustDomain,
        limits: SharedLimits, interest: SharedInterest = .none, priority: Int = 0, label: String? = nil
    ) {
        self.method = method
        self.target = target
        self.lines = lines
        self.upload = upload
        self.trust = trust
        sharedLimits = limits
        sharedInterest = interest
        self.priority = priority
        self.label = label
    }
}

extension TransferPlan {
    /// Creates a plan without time limits, for a URL that is not used again.
    package init(
        method: String, url: String, host: String, port: UInt16, isSecure: Bool, lines: HeaderLines,
        upload: Upload, trust: TrustDomain, priority: Int = 0, label: String? = nil
    ) {
        self.init(
            method: method, target: PlannedURL(url, host: host, port: port, isSecure: isSecure), lines: lines,
            upload: upload, trust: trust, limits: SharedLimits(TransferLimits()), priority: priority, label: label)
    }
}
