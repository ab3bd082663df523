// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The wait that a server requests, read from the fields of a response.
///
/// `Retry-After` is a number of seconds or a date (RFC 9110 §10.2.3); a date is compared with the server's `Date` if it
/// sends one. Without `Retry-After`, a used-up quota counts: `RateLimit` with its `r` and `t`, `RateLimit-Remaining`
/// with `RateLimit-Reset` (drafts of the IETF's HTTPAPI working group), and the latter two with the prefix `X-`. A
/// reset that is a point in time is compared with the client's clock.
struct WaitAdvice {
    private let head: ResponseHead
    private let now: HTTPDate

    init(_ head: ResponseHead, now: HTTPDate = HTTPDate(Date())) {
        self.head = head
        self.now = now
    }

    /// The wait; nil when the response contains no wait, or no valid one.
    var wait: Duration? { retryAfter ?? exhaustedQuota }

    /// The time until a used-up quota is renewed, regardless of the other fields.
    var exhaustedQuota: Duration? { quota ?? legacyQuota("RateLimit") ?? legacyQuota("X-RateLimit") }

    private var retryAfter: Duration? {
        guard let text = head[.retryAfter] else { return nil }
        if let seconds = WaitAdvice.number(text) { return WaitAdvice.wait(seconds) }
        guard let date = HTTPDate(text, now: now) else { return nil }
        let reference = head[.date].flatMap { HTTPDate($0, now: now) } ?? now
        return WaitAdvice.wait(Double(max(0, date.seconds - reference.seconds)))
    }

    /// The longest wait among the used-up quotas, as in `RateLimit: "default";r=0;t=30`.
    private var quota: Duration? {
        var longest: Duration?
        for item in head["RateLimit"]?.split(separator: ",") ?? [] {
            var values: [Substring: Double] = [:]
            for parameter in item.split(separator: ";").dropFirst() {
                let pair = parameter.split(separator: "=", maxSplits: 1)
                guard pair.count == 2 else { continue }
                values[pair[0].trimmed] = WaitAdvice.number(String(pair[1].trimmed))
            }
            guard values["r"] == 0, let wait = values["t"].map({ WaitAdvice.wait($0) }) else { continue }
            longest = max(longest ?? .zero, wait)
        }
        return longest
    }

    private func legacyQuota(_ prefix: String) -> Duration? {
        guard let left = head[HeaderName("\(prefix)-Remaining")], WaitAdvice.number(left) == 0,
            let reset = head[HeaderName("\(prefix)-Reset")].flatMap({ WaitAdvice.number($0) })
        else { return nil }
        // No quota lasts for thirty years, so the number is a date.
        let isDate = reset >= Duration.maximumAccepted
        return WaitAdvice.wait(isDate ? max(0, reset - Double(now.seconds)) : reset)
    }

    /// Limits a wait to about 31 years.
    private static func wait(_ seconds: Double) -> Duration { .seconds(min(seconds, Duration.maximumAccepted)) }

    private static func number(_ text: String) -> Double? {
        guard !text.isEmpty, text.utf8.count <= 18, ByteSet.digits.containsAll(of: text) else { return nil }
        return Double(text)
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
