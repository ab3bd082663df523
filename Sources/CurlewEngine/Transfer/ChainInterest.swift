// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The heads and failures of an attempt that the chain of interceptors must see; all others are final.
///
/// Each interceptor of the chain names its own interest, and the engine evaluates their union on the loop.
package struct ChainInterest: Sendable {
    /// A set of statuses from 100 to 611.
    package struct Statuses: Sendable, Equatable {
        private static let range = 100...611
        // A tuple, because an array would need an allocation of its own.
        private var words: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
        /// Whether the set contains all statuses outside the range.
        private var hasOthers = false

        package init(_ statuses: [Int] = []) { for status in statuses { insert(status) } }

        /// Creates the set of the statuses in ranges.
        package init(in ranges: [ClosedRange<Int>]) {
            for range in ranges {
                for status in range.clamped(to: Statuses.range) where range.contains(status) { insert(status) }
                if range.lowerBound < Statuses.range.lowerBound || range.upperBound > Statuses.range.upperBound {
                    hasOthers = true
                }
            }
        }

        /// Adds a status; one outside the range adds all statuses outside the range.
        package mutating func insert(_ status: Int) {
            guard Statuses.range.contains(status) else { return hasOthers = true }
            let bit = status - Statuses.range.lowerBound
            withUnsafeMutableBytes(of: &words) { raw in
                raw.assumingMemoryBound(to: UInt64.self)[bit >> 6] |= 1 << UInt64(bit & 63)
            }
        }

        package func contains(_ status: Int) -> Bool {
            guard Statuses.range.contains(status) else { return hasOthers }
            let bit = status - Statuses.range.lowerBound
            return withUnsafeBytes(of: words) { raw in
                raw.assumingMemoryBound(to: UInt64.self)[bit >> 6] & 1 << UInt64(bit & 63) != 0
            }
        }

        fileprivate mutating func formUnion(_ other: Statuses) {
            words.0 |= other.words.0
            words.1 |= other.words.1
            words.2 |= other.words.2
            words.3 |= other.words.3
            words.4 |= other.words.4
            words.5 |= other.words.5
            words.6 |= other.words.6
            words.7 |= other.words.7
            hasOthers = hasOthers || other.hasOthers
        }

        package static func == (left: Statuses, right: Statuses) -> Bool {
            withUnsafeBytes(of: left.words) { left in
                withUnsafeBytes(of: right.words) { right in left.elementsEqual(right) }
            } && left.hasOthers == right.hasOthers
        }
    }

    /// The statuses of responses that the chain sees.
    package var statuses = Statuses()
    /// The statuses of responses that the chain sees if they have a `Location`.
    package var redirects = Statuses()
    /// The fields of responses that the chain sees.
    package var fields: HeadFields = []
    /// Whether the chain sees failures, except for a cancellation, the end of the session, and a failure after the head
    /// of a streamed response.
    package var failures = false
    /// Whether the chain may run code of the user after a response.
    ///
    /// A transfer with such a chain runs it from the start, so that the code finds the task-local values of the task
    /// that started the transfer.
    package var runsUserCode = false

    /// Creates an interest in nothing.
    package init() {}

    package mutating func formUnion(_ other: ChainInterest) {
        statuses.formUnion(other.statuses)
        redirects.formUnion(other.redirects)
        fields.formUnion(other.fields)
        failures = failures || other.failures
        runsUserCode = runsUserCode || other.runsUserCode
    }

    /// Returns whether the chain must see a response.
    package func includes(status: Int, _ seen: HeadFields) -> Bool {
        statuses.contains(status) || seen.contains(.location) && redirects.contains(status)
            || !fields.isDisjoint(with: seen)
    }
}

/// A shared `ChainInterest`, so that each run with the same interest holds a reference instead of a copy.
package final class SharedInterest: Sendable {
    package let values: ChainInterest

    package init(_ values: ChainInterest) { self.values = values }

    /// The interest in nothing.
    package static let none = SharedInterest(ChainInterest())
}

/// The fields of a response head that the engine or an interest needs to know.
package struct HeadFields: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let location = HeadFields(rawValue: 1)
    package static let contentEncoding = HeadFields(rawValue: 2)
    package static let setCookie = HeadFields(rawValue: 4)
    package static let strictTransportSecurity = HeadFields(rawValue: 8)
    package static let alternativeServices = HeadFields(rawValue: 16)
    /// No field of a head: with this member, a set of fields stands for every head.
    package static let every = HeadFields(rawValue: 128)
}
