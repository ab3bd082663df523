// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// The longest duration in seconds that this module accepts as a number: about 31 years, far below the limit at
    /// which `Duration` traps.
    package static let maximumAccepted: Double = 1_000_000_000

    /// Creates a duration from the seconds in a file or a field; nil for a negative number, for one above
    /// ``maximumAccepted`` and for NaN.
    package init?(untrustedSeconds seconds: Double) {
        guard seconds >= 0, seconds <= Self.maximumAccepted else { return nil }
        self = .seconds(seconds)
    }

    /// The duration in seconds.
    package var inSeconds: Double {
        // `components` traps when the seconds do not fit in 64 bits.
        let (seconds, attoseconds) = min(max(self, .seconds(Int64.min)), .seconds(Int64.max)).components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }

    /// A short English text in s, ms or µs, to a tenth: "1.5 s", "20 ms", "0 s".
    package var brief: String {
        let seconds = inSeconds
        if seconds.magnitude >= 1 || seconds == 0 { return Self.tenths(seconds) + " s" }
        if seconds.magnitude >= 1e-3 { return Self.tenths(seconds * 1e3) + " ms" }
        return Self.tenths(seconds * 1e6) + " µs"
    }

    private static func tenths(_ value: Double) -> String {
        let text = "\((value * 10).rounded() / 10)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
