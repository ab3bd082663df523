// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// The status that a monitor sends to systemd.
@Suite(.timeLimit(.minutes(5)))
struct ServiceStatusTests {
    @Test(arguments: [false, true]) func statusArrives(isAbstract: Bool) async throws {
        let socket = try StatusSocket(isAbstract: isAbstract)
        let manager = try #require(ServiceManager(address: socket.address))
        let log = ActivityLog()
        let monitor = ActivityMonitor(activationDelay: .zero, completionDelay: .zero)
        let action = ActivityMonitor.Action.serviceStatus(active: "loading", idle: "idle") { manager }
        let task = monitor.perform(
            ActivityMonitor.Action(making: {
                let body = action.make()
                return { isActive in
                    await body(isActive)
                    log.append(isActive)
                }
            }))
        await log.wait(forCount: 1)
        #expect(socket.receive() == "STATUS=idle")
        await monitor.withActivity { await log.wait(forCount: 2) }
        #expect(socket.receive() == "STATUS=loading")
        await log.wait(forCount: 3)
        #expect(socket.receive() == "STATUS=idle")
        #expect(socket.receive() == nil)
        task.cancel()
        await task.value
    }

    @Test func statusIsOneBoundedLine() {
        func message(_ text: String) -> String { String(decoding: ServiceManager.message(status: text), as: UTF8.self) }
        #expect(message("a\nREADY=1\r\nb\u{0}c") == "STATUS=a READY=1  b c")
        #expect(message("") == "STATUS=")
        let long = String(repeating: "é", count: 2000)
        #expect(message(long) == "STATUS=" + String(repeating: "é", count: 512))
        #expect(message("x" + long) == "STATUS=x" + String(repeating: "é", count: 511))
    }

    @Test(arguments: ["", "/", "@", "relative", "vsock:2:1", "/" + String(repeating: "x", count: 200)])
    func otherAddressesAreIgnored(address: String) { #expect(ServiceManager(address: address) == nil) }

    @Test func missingAndFullReceiversDoNotBlock() throws {
        let socket = try StatusSocket(isAbstract: true)
        let manager = try #require(ServiceManager(address: socket.address))
        var sent = 0
        while sent < 100_000, manager.send(status: String(repeating: "x", count: 1000)) { sent += 1 }
        #expect(sent > 0 && sent < 100_000)
        #expect(!(ServiceManager(address: "/nowhere/at/all")?.send(status: "x") ?? true))
    }

    @Test func actionWithoutAServiceManagerDoesNothing() async {
        let action = ActivityMonitor.Action.serviceStatus(active: "a", idle: "b") { nil }
        await action.make()(true)
    }
}
