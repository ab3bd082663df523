// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("RS-22: property list format")
struct PropertyListTests {
    @Test(arguments: PropertyList.Layout.allCases)
    func bothLayoutsAreDecoded(layout: PropertyList.Layout) throws {
        let user = ReadingScene.User(name: "é", age: 3, addresses: [])
        let data = try PropertyList(layout).encode(user)
        #expect(data.starts(with: Array((layout == .xml ? "<?xml" : "bplist00").utf8)))
        #expect(try PropertyList().decode(ReadingScene.User.self, from: data, of: ReadingScene.head(nil)) == user)
    }

    @Test func contentTypesFollowTheLayout() throws {
        func request(_ format: some RequestFormat) throws -> (String, Data) {
            (format.contentType.description, try format.encode([1]))
        }
        func response(_ format: some ResponseFormat) -> [String] { format.accepts.map(\.description) }
        #expect(try request(.plist).0 == "application/x-plist")
        #expect(try request(.plist).1.starts(with: Array("<?xml".utf8)))
        #expect(try request(.plist(.binary)).1.starts(with: Array("bplist".utf8)))
        #expect(response(.plist) == ["application/x-plist", "application/xml; q=0.5", "text/xml; q=0.5"])
    }

    @Test("RS-14, RS-22: an empty body is nil")
    func emptyBodyIsNil() async throws {
        let serializer = Serializers.Formatted<[Int]?>(PropertyList())
        #expect(try await serializer.output(from: ReadingScene.response(" \n", "application/x-plist")) == nil)
        let data = try PropertyList(.binary).encode([1])
        #expect(try await serializer.output(from: ReadingScene.response(data, "application/x-plist")) == [1])
    }
}
