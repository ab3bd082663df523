// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// The longest wait, about 31 years: the arithmetic of clocks traps on durations that are much longer.
    private static let longestWait = Duration.seconds(1_000_000_000)

    /// The duration as clocks, libcurl and the kernel accept it: at least zero, at most about 31 years.
    package var asWait: Duration { min(max(self, .zero), Self.longestWait) }
}

extension Clock where Duration == Swift.Duration {
    /// Waits; the only place where a clock sleeps, because clocks trap on very long durations.
    ///
    /// - Parameter duration: How long; a negative duration counts as zero, one above 31 years as 31 years.
    /// - Throws: `CancellationError` when the task is cancelled, and errors of the clock.
    package func wait(for duration: Duration) async throws { try await sleep(for: duration.asWait) }
}
