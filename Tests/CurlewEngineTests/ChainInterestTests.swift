// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

extension ChainInterest {
    /// The interest of a chain that follows redirects.
    static let anyRedirect = ChainInterest(redirects: [301, 302, 303, 307, 308])

    init(statuses: [Int] = [], redirects: [Int] = [], fields: HeadFields = [], failures: Bool = false) {
        self.init()
        self.statuses = Statuses(statuses)
        self.redirects = Statuses(redirects)
        self.fields = fields
        self.failures = failures
    }
}

@Suite("ChainInterest")
struct ChainInterestTests {
    private typealias Statuses = ChainInterest.Statuses

    private func members(_ statuses: Statuses) -> [Int] { (0...1000).filter { statuses.contains($0) } }

    private static let outside = Array(0..<100) + Array(612...1000)
    /// The first and the last status of each word of the set.
    private static let edges = (0..<8).flatMap { [100 + 64 * $0, 163 + 64 * $0] }

    // MARK: Sets of statuses

    @Test func setContainsExactlyItsStatuses() {
        #expect(members(Statuses()) == [])
        for status in 100...611 { #expect(members(Statuses([status])) == [status]) }
        #expect(members(Statuses(ChainInterestTests.edges.reversed())) == ChainInterestTests.edges)
    }

    @Test(arguments: [Int.min, -1, 0, 99, 612, 999, Int.max])
    func statusOutsideTheRangeAddsAllStatusesOutside(status: Int) {
        var statuses = Statuses([404])
        #expect(!statuses.contains(status))
        statuses.insert(status)
        #expect(members(statuses) == (ChainInterestTests.outside + [404]).sorted())
        for other in [Int.min, -1, Int.max] { #expect(statuses.contains(other)) }
    }

    @Test(
        arguments: [
            ([], []),
            ([500...599], [500...599]),
            ([404...404, 160...170, 168...172], [160...172, 404...404]),
            ([100...611], [100...611]),
            ([600...612], [0...99, 600...1000]),
            ([99...101], [0...101, 612...1000]),
            ([700...800], [0...99, 612...1000]),
            ([0...50], [0...99, 612...1000]),
            ([Int.min...Int.max], [0...1000]),
        ] as [([ClosedRange<Int>], [ClosedRange<Int>])])
    func setContainsTheStatusesOfItsRanges(ranges: [ClosedRange<Int>], expected: [ClosedRange<Int>]) {
        #expect(members(Statuses(in: ranges)) == expected.flatMap(Array.init))
    }

    @Test func setsWithTheSameStatusesAreEqual() {
        #expect(Statuses([503, 404]) == Statuses(in: [404...404, 503...503]))
        #expect(Statuses([99]) == Statuses([700]))
        #expect(Statuses([404, 700]) != Statuses([404]))
        for edge in ChainInterestTests.edges { #expect(Statuses([edge]) != Statuses([200])) }
    }

    // MARK: Interests

    @Test func unionContainsBothInterests() {
        let edges = ChainInterestTests.edges
        let (left, right) = (edges.filter { $0.isMultiple(of: 2) }, edges.filter { !$0.isMultiple(of: 2) })
        var union = ChainInterest(statuses: left, redirects: right)
        union.formUnion(ChainInterest(statuses: right, redirects: left, fields: .location))
        #expect(members(union.statuses) == edges)
        #expect(members(union.redirects) == edges)
        #expect(union.fields == .location)
        #expect(!union.failures && !union.runsUserCode)
        union.formUnion(ChainInterest(statuses: [999], fields: .contentEncoding, failures: true))
        #expect(members(union.statuses) == (edges + ChainInterestTests.outside).sorted())
        #expect(members(union.redirects) == edges)
        #expect(union.fields == [.location, .contentEncoding])
        #expect(union.failures && !union.runsUserCode)
        var code = ChainInterest()
        code.runsUserCode = true
        union.formUnion(code)
        union.formUnion(ChainInterest())
        #expect(members(union.statuses) == (edges + ChainInterestTests.outside).sorted())
        #expect(union.failures && union.runsUserCode)
    }

    @Test func emptyInterestIncludesNoResponse() {
        for status in 100...1000 {
            #expect(!ChainInterest().includes(status: status, [.location, .contentEncoding]))
        }
    }

    @Test func statusOfInterestNeedsNoField() {
        let interest = ChainInterest(statuses: [503])
        #expect(interest.includes(status: 503, []))
        #expect(interest.includes(status: 503, .location))
        #expect(!interest.includes(status: 502, [.location, .contentEncoding]))
    }

    @Test(arguments: [301, 302, 303, 307, 308]) func redirectNeedsAStatusAndALocation(status: Int) {
        #expect(ChainInterest.anyRedirect.includes(status: status, .location))
        #expect(ChainInterest.anyRedirect.includes(status: status, [.location, .contentEncoding]))
        #expect(!ChainInterest.anyRedirect.includes(status: status, .contentEncoding))
        #expect(!ChainInterest.anyRedirect.includes(status: status, []))
        #expect(!ChainInterest.anyRedirect.includes(status: 305, .location))
    }

    @Test func fieldOfInterestMatchesEveryStatus() {
        let interest = ChainInterest(fields: .contentEncoding)
        for status in [200, 404, 999] {
            #expect(interest.includes(status: status, .contentEncoding))
            #expect(interest.includes(status: status, [.location, .contentEncoding]))
            #expect(!interest.includes(status: status, .location))
            #expect(!interest.includes(status: status, []))
        }
    }
}
