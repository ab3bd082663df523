// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Testing

@Suite("Concurrent transfers", .timeLimit(.minutes(5)))
struct ConcurrencyTests {
    /// The first response of an unknown host may never arrive; other transfers to the host do not wait for it.
    @Test(arguments: [false, true])
    func stalledFirstBodyDoesNotBlockOtherTransfers(isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil)
        let gate = Gate()
        server.on("GET", "/held", .text("hello").fault(.stall(gate), at: .body(2)))
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        let transfers = (0..<6).map { _ in session.transfer(Request(.get, server.url("/held"))).start() }
        #expect(await gate.waitUntilReached(times: 6))
        #expect(server.openConnections == 6)
        gate.open()
        for transfer in transfers { #expect(try await transfer.value.count == 5) }
        #expect(server.violations == [])
    }

    @Test(arguments: [false, true])
    func stalledFirstResponseDoesNotBlockOtherTransfers(isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil)
        let gate = Gate()
        server.on("GET", "/silent", .text("late").fault(.stall(gate), at: .start))
        server.on("GET", "/", .text("hello"))
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        let silent = session.transfer(Request(.get, server.url("/silent"))).start()
        #expect(await gate.waitUntilReached())
        #expect(try await session.data(for: Request(.get, server.url("/"))).0.count == 5)
        gate.open()
        #expect(try await silent.value.count == 4)
    }
}
