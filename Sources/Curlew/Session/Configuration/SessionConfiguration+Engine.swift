// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

// Conversion of a session's configuration to the engine's types.

extension EngineConfiguration {
    /// - Parameter keyLogRefused: Called with the reason if the file of `tls.keyLogFile` is not written, on any thread.
    init(
        _ configuration: Session.Configuration, _ resolver: EngineResolver,
        keyLogRefused: @escaping @Sendable (String) -> Void
    ) {
        self.init()
        let addresses = configuration.tcp.addresses
        self.resolver =
            addresses.isEmpty
            ? resolver
            : resolver.withFixedAddresses(
                Dictionary(addresses.map { (HostName.key($0) ?? $0, $1) }, uniquingKeysWith: { first, _ in first }))
        tls = TLS(configuration.tls)
        tls.keyLog = configuration.tls.keyLogFile.map { KeyLog(path: $0, refused: keyLogRefused) }
        version = Version(sameAs: configuration.http.version)
        connectionsPerHost = configuration.limits.connectionsPerHost
        connections = configuration.limits.connections
        transfersPerHost = configuration.limits.transfersPerHost
        streamsPerConnection = configuration.limits.streamsPerConnection
        idleLifetime = configuration.limits.idleConnectionLifetime.engineTime
        if let lifetime = configuration.limits.connectionLifetime { connectionLifetime = lifetime.engineTime }
        let tcp = configuration.tcp
        setTCP(
            keepAlive: tcp.keepAlive.map {
                ($0.idle.asWait.components.seconds, $0.interval.asWait.components.seconds, $0.count)
            },
            userTimeout: tcp.userTimeout.map { $0.engineTime / 1_000_000 }, fastOpen: tcp.fastOpen)
        addressOrder = AddressOrder(sameAs: tcp.addressOrder)
        attemptDelay = tcp.attemptDelay.engineTime
        socketRules.interface = tcp.interface
        socketRules.localAddress = tcp.localAddress
        socketRules.forbidden = tcp.forbiddenInterfaces.map { SocketRules.Interfaces($0) }
        requestsPerConnection = configuration.limits.requestsPerConnection ?? .max
        pings = configuration.http.ping.map { Pings(interval: $0.interval.engineTime, limit: $0.limit.engineTime) }
        highWater = Int(clamping: configuration.buffers.highWater.bytes)
        lowWater = Int(clamping: configuration.buffers.lowWater.bytes)
        receiveBuffer = Int(clamping: configuration.buffers.receive.bytes)
        throttle = Throttle(configuration.limits.bandwidth)
    }
}

extension SocketRules.Interfaces {
    fileprivate init(_ interfaces: Session.Configuration.TCP.Interfaces) {
        self =
            switch interfaces {
            case .named(let name): .named(name)
            case .cellular: .kind(.cellular)
            case .wifi: .kind(.wifi)
            case .ethernet: .kind(.ethernet)
            }
    }
}

extension TransferLimits {
    /// Creates the limits of requests without limits of their own.
    init(_ configuration: Session.Configuration) {
        self.init()
        merge(configuration.timeouts.withDefaults)
        continueTimeout = configuration.http.expectContinueTimeout.engineTime
        bodySize = Int(clamping: configuration.limits.responseBody.bytes)
        headSize = Int(clamping: configuration.limits.responseHead.bytes)
        fieldCount = configuration.limits.responseFields
    }
}

extension Throttle {
    init(_ limit: Request.BandwidthLimit) {
        self.init(
            sending: limit.upload.map { UInt64(clamping: $0.bytes) },
            receiving: limit.download.map { UInt64(clamping: $0.bytes) })
    }
}
