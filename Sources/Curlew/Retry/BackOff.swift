// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How long to wait before the next of several tries: longer each time, and by chance, so that those who failed together
/// do not come back together.
///
/// The wait before try *n* + 1 is drawn evenly from `least` to `first` × `factor`ⁿ⁻¹, but at most `longest`. With a `least`
/// of zero, the default, that is "full jitter", which may give next to no wait.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.backOff = BackOff(first: .milliseconds(200), longest: .seconds(5))
/// ```
public struct BackOff: Sendable, Hashable, Codable {
    /// The longest wait before the second try.
    public var first: Duration
    /// By how much it grows each time.
    public var factor: Double
    /// The longest wait there is.
    public var longest: Duration
    /// The shortest wait there is; zero unless set.
    ///
    /// Chance never gives less; `longest` bounds it.
    public var least: Duration

    /// Waits that double, from 500 ms to 30 s, unless given.
    ///
    /// What is negative counts as zero, a factor below 1 as 1.
    public init(
        first: Duration = .milliseconds(500), factor: Double = 2, longest: Duration = .seconds(30),
        least: Duration = .zero
    ) {
        self.first = first
        self.factor = factor
        self.longest = longest
        self.least = least
    }

    /// No wait at all.
    public static let none = BackOff(first: .zero, longest: .zero)

    /// The longest wait after so many failures, from 1; never below ``least``.
    public func ceiling(after failures: Int) -> Duration { max(growing(after: failures), floor) }

    /// The shortest wait, within what is allowed.
    private var floor: Duration { min(max(least, .zero), max(longest, .zero)) }

    private func growing(after failures: Int) -> Duration {
        guard first > .zero, longest > .zero else { return .zero }
        let growth = factor.isFinite ? max(factor, 1) : 1
        let times = pow(growth, Double(max(failures, 1) - 1))
        let seconds = first.inSeconds * times
        guard seconds < longest.inSeconds else { return longest }
        // Exact where the factor is whole.
        return min(Int(exactly: times).map { first * $0 } ?? .seconds(seconds), longest)
    }

    /// The wait after so many failures, from 1.
    ///
    /// - Parameters:
    ///   - failures: How many tries have failed.
    ///   - chance: A number from 0 to 1 drawn at random.
    public func wait(after failures: Int, chance: Double) -> Duration {
        floor + (ceiling(after: failures) - floor) * min(max(chance, 0), 1)
    }

    private enum CodingKeys: CodingKey { case first, factor, longest, least }

    /// Decodes seconds as numbers; what is missing takes its default.
    /// - Throws: `DecodingError.dataCorrupted` for a negative or endless number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        first = try container.seconds(.first) ?? first
        factor = try container.decodeIfPresent(Double.self, forKey: .factor) ?? factor
        longest = try container.seconds(.longest) ?? longest
        least = try container.seconds(.least) ?? least
    }

    /// Encodes seconds as numbers.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(first.inSeconds, forKey: .first)
        try container.encode(factor, forKey: .factor)
        try container.encode(longest.inSeconds, forKey: .longest)
        try container.encode(least.inSeconds, forKey: .least)
    }
}
