// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("RS-04: sets of status codes")
struct StatusSetTests {
    static let rows: [(StatusSet, String, [Int], [Int])] = [
        ([], "none", [], [0, 200, 599]),
        (.success, "200…299", [200, 204, 299], [199, 300, 404]),
        (.any, "any", [Int.min, -1, 0, 200, 999, Int.max], []),
        (.success.inserting(.notModified), "200…299, 304", [304, 200], [303, 305]),
        ([.ok, 404, 410, 200], "200, 404, 410", [200, 404, 410], [201, 409]),
        (StatusSet(400...499, 200...299), "200…299, 400…499", [200, 400], [300]),
        (StatusSet(200...250, 240...299, 210...220), "200…299", [250, 251, 299], [300]),
        (StatusSet(200...249, 250...299), "200…299", [249, 250], [199]),
        (StatusSet.success.union([300, 302]), "200…300, 302", [300, 302], [301]),
        (StatusSet(Int.min...0, 0...Int.max), "any", [0], []),
        (StatusSet(5...Int.max, Int.max...Int.max), "5…\(Int.max)", [5], [4]),
    ]

    @Test(arguments: rows)
    func membershipAndDescriptionFollowTheRanges(set: StatusSet, description: String, members: [Int], others: [Int])
        throws
    {
        #expect(set.description == description)
        #expect(members.allSatisfy { set.contains(Status($0)) })
        #expect(!others.contains { set.contains(Status($0)) })
        let data = try JSONEncoder().encode(set)
        #expect(try JSONDecoder().decode(StatusSet.self, from: data) == set)
    }

    @Test func equalSetsMayHaveDifferentRanges() throws {
        #expect([200, 202, 201] as StatusSet == StatusSet(200...202))
        let text = Data("[[304,304],[250,299],[200,260]]".utf8)
        #expect(try JSONDecoder().decode(StatusSet.self, from: text) == .success.inserting(304))
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(StatusSet.self, from: Data("[[2,1]]".utf8)) }
        #expect(String(decoding: try JSONEncoder().encode(StatusSet.success), as: UTF8.self) == "[[200,299]]")
    }
}
