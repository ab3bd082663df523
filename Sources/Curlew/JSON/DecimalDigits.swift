// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A number of JSON, digit by digit: (−1)^s · mantissa · 10^exponent.
struct DecimalDigits {
    var isNegative = false
    /// The first 19 significant digits.
    var mantissa: UInt64 = 0
    /// The exponent of the mantissa, clamped to ±2³⁰.
    var exponent = 0
    /// The number of digits of the mantissa.
    var count = 0
    /// Whether the digits after the mantissa are not all zero.
    var isCut = false

    /// The nearest `Double`, ties to even; nil if the digits do not determine it, or the exponent is beyond the table.
    var nearest: Double? {
        if mantissa == 0 { return isNegative ? -0.0 : 0.0 }
        if isCut { return nil }
        if mantissa <= 1 << 53, -22...22 ~= exponent {
            let power = Self.exact[abs(exponent)]
            let value = exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
            return isNegative ? -value : value
        }
        return rounded
    }

    /// Powers of ten that a `Double` holds exactly.
    private static let exact: [Double] = (0...22).map { (0..<$0).reduce(1.0) { value, _ in value * 10 } }

    /// The result of the algorithm of Eisel and Lemire, with a power of five of 128 bits; nil if that is too imprecise.
    private var rounded: Double? {
        guard PowersOfFive.exponents ~= exponent else { return nil }
        let power = PowersOfFive.table[exponent - PowersOfFive.exponents.lowerBound]
        let shift = mantissa.leadingZeroBitCount
        let digits = mantissa << UInt64(shift)
        let (high, low) = digits.multipliedFullWidth(by: UInt64(truncatingIfNeeded: power >> 64))
        var (upper, lower) = (high, low)
        // The lower half of the power matters only if the bits below the result are all ones.
        if upper & 0x1FF == 0x1FF {
            let more = digits.multipliedFullWidth(by: UInt64(truncatingIfNeeded: power)).high
            let (sum, isOver) = lower.addingReportingOverflow(more)
            lower = sum
            if isOver { upper &+= 1 }
            if upper & 0x1FF == 0x1FF, lower == .max, !(-27...55 ~= exponent) { return nil }
        }
        let top = Int(upper >> 63)
        var significand = upper >> UInt64(top + 9)
        // floor(log2(10^exponent)), by 217706 / 2^16.
        let binary = (217_706 * exponent) >> 16 + 64 - shift + top
        var biased = binary + 1023 - 1
        guard biased > 0, biased < 2046 else { return nil }
        // The value is halfway between two doubles: round to even if the product was exact.
        if lower <= 1, -4...23 ~= exponent, significand & 3 == 1, significand << UInt64(top + 9) == upper {
            significand &= ~1
        }
        significand += significand & 1
        significand >>= 1
        if significand >= 1 << 53 {
            significand = 1 << 52
            biased += 1
        }
        let bits = significand & (1 << 52 - 1) | UInt64(biased) << 52 | (isNegative ? 1 << 63 : 0)
        return Double(bitPattern: bits)
    }

    /// Returns the magnitude of a whole number; nil if 128 bits cannot hold it.
    ///
    /// - Parameter digits: All digits without the point; the mantissa has only the first 19.
    static func whole(_ digits: some Sequence<UInt8>, exponent: Int) -> UInt128? {
        var value: UInt128 = 0
        for digit in digits {
            guard let next = times(10, value, plus: UInt128(digit)) else { return nil }
            value = next
        }
        if value == 0 { return 0 }
        for _ in 0..<exponent {
            guard let next = times(10, value, plus: 0) else { return nil }
            value = next
        }
        return value
    }

    private static func times(_ factor: UInt128, _ value: UInt128, plus digit: UInt128) -> UInt128? {
        let (product, isOver) = value.multipliedReportingOverflow(by: factor)
        let (sum, isOverToo) = product.addingReportingOverflow(digit)
        return isOver || isOverToo ? nil : sum
    }
}
