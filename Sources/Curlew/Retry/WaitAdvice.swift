// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// How long a server wants its client to wait, read from the fields of a response.
///
/// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3), the date measured by the server's own clock where it says
/// `Date`. Without it, a used-up quota: `RateLimit` with its `r` and `t`, `RateLimit-Remaining` with `RateLimit-Reset`
/// (drafts of the IETF's HTTPAPI working group), and the same with `X-` in front, where a reset that is a point in time
/// counts from now.
struct WaitAdvice {
    private let head: ResponseHead
    private let now: HTTPDate

    init(_ head: ResponseHead, now: HTTPDate = HTTPDate(Date())) {
        self.head = head
        self.now = now
    }

    /// Nil when the server says nothing, or nothing that can be understood.
    var wait: Duration? { retryAfter ?? usedUp }

    /// How long a quota lasts that is used up, whatever else the response says.
    var usedUp: Duration? { quota ?? oldQuota("RateLimit") ?? oldQuota("X-RateLimit") }

    private var retryAfter: Duration? {
        guard let text = head[.retryAfter] else { return nil }
        if let seconds = WaitAdvice.number(text) { return WaitAdvice.wait(seconds) }
        guard let date = HTTPDate(text, now: now) else { return nil }
        let reference = head[.date].flatMap { HTTPDate($0, now: now) } ?? now
        return WaitAdvice.wait(Double(max(0, date.seconds - reference.seconds)))
    }

    /// `RateLimit: "default";r=0;t=30`: of those that are used up the longest.
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

    private func oldQuota(_ prefix: String) -> Duration? {
        guard let left = head[HeaderName("\(prefix)-Remaining")], WaitAdvice.number(left) == 0,
            let reset = head[HeaderName("\(prefix)-Reset")].flatMap({ WaitAdvice.number($0) })
        else { return nil }
        // No quota lasts for thirty years, so that is a date.
        let isDate = reset >= Duration.longestAccepted
        return WaitAdvice.wait(isDate ? max(0, reset - Double(now.seconds)) : reset)
    }

    /// What is longer than can be meant is still long.
    private static func wait(_ seconds: Double) -> Duration { .seconds(min(seconds, Duration.longestAccepted)) }

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
