// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import Curlew

@Suite("International names through libidn2")
struct InternationalNamesTests {
    @Test func concurrentEncodingIsSafe() async throws {
        let names = try #require(InternationalNames.system)
        await withTaskGroup(of: String?.self) { group in
            for _ in 0..<50 { group.addTask { try? names.ascii("bücher.example") } }
            for await name in group { #expect(name == "xn--bcher-kva.example") }
        }
    }

    @Test func refusedNamesReportAReason() throws {
        let names = try #require(InternationalNames.system)
        let refusal = #expect(throws: InternationalNames.Refusal.self) { try names.ascii("a\u{200D}é") }
        #expect(refusal?.message.isEmpty == false)
    }

    @Test(arguments: ["libnone-such.so.9", "libc.so.6"])
    func otherLibrariesAreRejected(library: String) {
        #expect(InternationalNames(library: library) == nil)
    }
}

@Suite("OnceBox")
struct OnceBoxTests {
    @Test func firstValueIsKept() async {
        let box = OnceBox<[Int]>()
        #expect(box.current == nil)
        let seen = await withTaskGroup(of: [Int].self) { group in
            for number in 0..<100 { group.addTask { box.value { [number] } } }
            return await group.reduce(into: Set<[Int]>()) { $0.insert($1) }
        }
        #expect(seen.count == 1)
        #expect(box.current == seen.first)
    }
}
