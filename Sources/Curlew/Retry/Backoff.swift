// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

extension RetryPolicy {
    /// The wait before the next attempt: longer after each failure, and random, so that clients that failed together do
    /// not return together.
    ///
    /// The wait before attempt *n* + 1 is drawn evenly from `least` to `first` × `factor`ⁿ⁻¹, but at most `longest`.
    /// With a `least` of zero, the default, this is "full jitter", which may yield almost no wait.
    ///
    /// ```swift
    /// var policy = RetryPolicy.standard
    /// policy.backoff = RetryPolicy.Backoff(first: .milliseconds(200), longest: .seconds(5))
    /// ```
    public struct Backoff: Sendable, Hashable, Codable {
        /// The longest wait before the second attempt.
        public var first: Duration
        /// The factor by which the longest wait grows with each failure.
        public var factor: Double
        /// The upper bound of all waits.
        public var longest: Duration
        /// The lower bound of all waits; zero unless set.
        ///
        /// No random wait is shorter; `longest` takes precedence over it.
        public var least: Duration

        /// Creates waits that double, from 500 ms to 30 s, unless given.
        ///
        /// Negative durations count as zero, and a factor below 1 as 1.
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
        public static let none = RetryPolicy.Backoff(first: .zero, longest: .zero)

        /// Returns the longest wait after a number of failures, counted from 1; never below ``least``.
        public func ceiling(after failures: Int) -> Duration { max(growing(after: failures), floor) }

        /// The lower bound: ``least``, limited to the range from zero to `longest`.
        private var floor: Duration { min(max(least, .zero), max(longest, .zero)) }

        private func growing(after failures: Int) -> Duration {
            guard first > .zero, longest > .zero else { return .zero }
            let growth = factor.isFinite ? max(factor, 1) : 1
            let times = pow(growth, Double(max(failures, 1) - 1))
            let seconds = first.inSeconds * times
            guard seconds < longest.inSeconds else { return longest }
            // The product is exact if the factor is a whole number.
            return min(Int(exactly: times).map { first * $0 } ?? .seconds(seconds), longest)
        }

        /// Returns the wait after a number of failures, counted from 1.
        ///
        /// - Parameters:
        ///   - failures: How many attempts have failed.
        ///   - chance: A random number from 0 to 1.
        public func wait(after failures: Int, chance: Double) -> Duration {
            floor + (ceiling(after: failures) - floor) * min(max(chance, 0), 1)
        }

        private enum CodingKeys: CodingKey { case first, factor, longest, least }

        /// Decodes seconds as numbers; a missing key leaves the default.
        /// - Throws: `DecodingError.dataCorrupted` for a duration that is negative or above about 31 years.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.init()
            first = try container.seconds(.first) ?? first
            factor = try container.decodeIfPresent(Double.self, forKey: .factor) ?? factor
            longest = try container.seconds(.longest) ?? longest
            least = try container.seconds(.least) ?? least
        }

        /// Encodes seconds as numbers.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(first.inSeconds, forKey: .first)
            try container.encode(factor, forKey: .factor)
            try container.encode(longest.inSeconds, forKey: .longest)
            try container.encode(least.inSeconds, forKey: .least)
        }
    }
}
