// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("EngineConfiguration")
struct EngineConfigurationTests {
    private static let kibibyte = 1 << 10
    /// The receive buffer, the high-water mark and the expected receive buffer of streamed bodies.
    private static let sizes: [(Int, Int, Int)] = [
        (64 * kibibyte, 1024 * kibibyte, 256 * kibibyte), (16 * kibibyte, 1024 * kibibyte, 64 * kibibyte),
        (1, 1024 * kibibyte, 4), (64 * kibibyte, 128 * kibibyte, 128 * kibibyte), (64 * kibibyte, 1, 64 * kibibyte),
        (512 * kibibyte, 1024 * kibibyte, 512 * kibibyte), (.max, .max, .max), (.max, 1, .max),
    ]

    @Test(arguments: sizes)
    func bulkBufferSizeFollowsReceiveBufferAndHighWater(receive: Int, highWater: Int, expected: Int) {
        var configuration = EngineConfiguration()
        configuration.receiveBuffer = receive
        configuration.highWater = highWater
        #expect(configuration.bulkBuffer == expected)
    }

    @Test(arguments: [
        // transfersPerHost, connectionsPerHost, streamsPerConnection, slotsPerHost, sharedSlotsPerHost
        (512, 64, 100, 64, 512), (512, 1, 100, 1, 100), (10, 64, 100, 10, 10), (512, .max, .max, 512, 512),
    ]) func slotsPerHostFollowTransferAndConnectionLimits(
        transfers: Int, connections: Int, streams: Int, each: Int, shared: Int
    ) {
        var configuration = EngineConfiguration()
        configuration.transfersPerHost = transfers
        configuration.connectionsPerHost = connections
        configuration.streamsPerConnection = streams
        #expect(configuration.slotsPerHost == each)
        #expect(configuration.sharedSlotsPerHost == shared)
    }
}
