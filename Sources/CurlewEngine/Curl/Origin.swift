// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A server as libcurl pools connections: scheme, host, port and route.
///
/// If an HTTP proxy forwards requests, the proxy is the server for all of them. An origin has the queue of the
/// transfers that wait for a slot.
final class Origin {
    /// A host whose addresses new connections need, and its port.
    struct Peer: Hashable {
        let host: String
        let port: UInt16
    }

    let host: String
    let port: UInt16
    let isSecure: Bool
    let route: Route?
    /// The host to which connections are opened: the proxy, or the server itself.
    let peer: Peer
    /// The hosts that have to be looked up before a connection is opened; `peer` is the first one if it is among them.
    let lookUps: [Peer]
    /// Transfers that hold a slot, and those of them that use their connection exclusively.
    var active = 0
    var exclusive = 0
    /// Open sockets to the origin in all domains, in use or idle.
    var sockets = 0
    /// Open sockets minus the transfers that were started, for each domain, by its number.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var idleCounts: [Int] = []
    /// Whether transfers share connections.
    var isShared = false
    /// Whether the HTTP version of the first connection is known.
    var isKnown = false
    /// The number of connections that was last added to the transport's demand.
    var counted = 0
    /// Whether the server has responded over HTTP/2.
    var speaksHTTP2 = false
    /// The sockets by their local ports, and the number of transfers whose socket could not be found.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var descriptors = DescriptorMap()
    /// Transfers that open a connection for others to share, and have not begun to send.
    var opening = 0
    /// Counts connections, for the round-robin order of addresses; it starts at a random number, because otherwise all
    /// clients of a server would start with the same address.
    var turn = Int.random(in: 0..<1 << 20)
    /// The number of transfers that share one HTTP/2 connection before another one is opened.
    let streamsPerConnection: Int
    var unidentifiedUsers = 0
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var queue = PriorityQueue<EngineTransfer>()
    /// The number of transfers in the queue, without stale entries.
    var waiting = 0
    /// The candidate for the next slot; nil while the origin does not compete for one.
    var candidate: Candidate?

    /// Returns the number of connections in a domain that are free for a transfer; it is negative while connections are
    /// being made.
    func idleConnections(in domain: UInt32) -> Int { Int(domain) < idleCounts.count ? idleCounts[Int(domain)] : 0 }

    /// Returns the key of a connection in `descriptors`: the local port, the address family, and TCP or UDP.
    static func descriptorKey(port: Int, isIPv6: Bool, isDatagram: Bool = false) -> Int {
        port | (isIPv6 ? 1 << 16 : 0) | (isDatagram ? 1 << 18 : 0)
    }

    /// Returns the key of a connection over a Unix socket, which has no port.
    static func descriptorKey(ofUnixSocket descriptor: CInt) -> Int { Int(descriptor) | 1 << 17 }

    func count(_ change: Int, in domain: UInt32) {
        while idleCounts.count <= Int(domain) { idleCounts.append(0) }
        idleCounts[Int(domain)] += change
    }

    /// The first transfer in the queue of an origin, and whether an existing connection can serve it.
    struct Candidate {
        var priority: Int
        var sequenceNumber: UInt64
        var joins: Bool
    }

    /// The options of another transfer that may share a connection.
    enum Sharing {
        /// The transfer joins a connection that has capacity.
        case joins
        /// The transfer opens a connection, because there are fewer than the running and waiting transfers need.
        case opens
        /// The transfer waits, because enough connections are being made for all waiting transfers.
        case waits
    }

    init(host: String, port: UInt16, isSecure: Bool, route: Route? = nil, streamsPerConnection: Int = 100) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.route = route
        self.streamsPerConnection = min(max(1, streamsPerConnection), 1 << 20)
        let server = Peer(host: host, port: port)
        var hosts = [server]
        if let route {
            switch route.hop {
            case .server: break
            case .socket: hosts = []
            case .proxy(let proxy):
                hosts = [Peer(host: proxy.host, port: proxy.port)] + (proxy.needsServerAddress ? [server] : [])
            }
        }
        peer = hosts.first ?? server
        lookUps = hosts.filter { NameCache.needsLookUp($0.host) }
    }

    /// The number of connections that the transfers with a slot need.
    var connections: Int {
        guard isShared else { return active }
        let streams = active - exclusive
        // Before the first connection is made, the other transfers wait for those that are being opened.
        if made == 0 { return max(connections(for: streams), opening) + exclusive }
        return connections(for: streams - opening) + opening + exclusive
    }

    /// Shared connections over which a request was sent.
    private var made: Int { max(0, descriptors.count - exclusive) }

    /// The option of another transfer that may share a connection.
    ///
    /// libcurl 7.88 puts any number of transfers on a connection that is still being made, so each transfer beyond the
    /// limit either opens a connection or waits for one.
    var sharing: Sharing {
        let streams = active - exclusive
        let made = made
        // An open socket may be a usable connection although its local port is not known yet.
        if made + opening == 0 && sockets <= exclusive { return .opens }
        let capacity = max(1, made) * streamsPerConnection + (made > 0 ? opening : max(0, opening - 1))
        if streams < capacity { return .joins }
        let coming = max(opening, sockets - descriptors.count)
        return made + coming < connections(for: streams + max(1, waiting)) ? .opens : .waits
    }

    /// Returns the number of connections that one more transfer would need: one or zero.
    func more(for transfer: EngineTransfer) -> Int {
        guard isShared && !transfer.isExclusive, sharing != .opens else { return 1 }
        return connections(for: active - exclusive + 1) - connections(for: active - exclusive)
    }

    private func connections(for streams: Int) -> Int {
        (streams + streamsPerConnection - 1) / streamsPerConnection
    }

    func forgetOpening(_ transfer: EngineTransfer) {
        guard transfer.loopState.opensConnection else { return }
        transfer.loopState.opensConnection = false
        opening -= 1
    }

    /// Returns the first entry of the queue, after removing transfers that left it or joined again with another
    /// priority.
    func first() -> PriorityQueue<EngineTransfer>.Entry? {
        while let entry = queue.first,
            !entry.element.loopState.isInQueue || entry.priority != entry.element.loopState.priority
        {
            queue.next()
        }
        return queue.first
    }
}

/// The origins whose first transfer may get a slot, ordered by these transfers.
///
/// Origins that need no new connection come first, because a lack of connections delays only the others.
struct ReadyOrigins {
    private var joining = PriorityQueue<Origin>()
    private var connecting = PriorityQueue<Origin>()
    /// The number of entries at which stale ones are removed; most stale entries would otherwise stay forever.
    private var most = 64

    var isEmpty: Bool { joining.isEmpty && connecting.isEmpty }

    mutating func nominate(_ origin: Origin) {
        guard let first = origin.first() else { return }
        let joins = origin.more(for: first.element) == 0
        if let candidate = origin.candidate, candidate.joins || !joins,
            !first.isBefore(priority: candidate.priority, sequenceNumber: candidate.sequenceNumber)
        {
            return
        }
        origin.candidate = Origin.Candidate(
            priority: first.priority, sequenceNumber: first.sequenceNumber, joins: joins)
        if joins {
            joining.join(origin, priority: first.priority, sequenceNumber: first.sequenceNumber)
        } else {
            connecting.join(origin, priority: first.priority, sequenceNumber: first.sequenceNumber)
            if connecting.count > most {
                connecting.removeAll { $0.candidate?.joins != false || $0.candidate?.priority != $1 }
                most = max(64, 2 * connecting.count)
            }
        }
    }

    /// Removes and returns the next origin; an origin that needs a connection only if one is left.
    mutating func next(connectionsLeft: Int) -> Origin? {
        while let entry = joining.first {
            joining.next()
            if take(entry, joins: true) { return entry.element }
        }
        while let entry = connecting.first {
            if entry.element.candidate?.joins == false, entry.element.candidate?.sequenceNumber == entry.sequenceNumber,
                connectionsLeft < 1
            {
                return nil
            }
            connecting.next()
            if take(entry, joins: false) { return entry.element }
        }
        return nil
    }

    /// Returns false for a stale entry, which a newer one has replaced.
    private func take(_ entry: PriorityQueue<Origin>.Entry, joins: Bool) -> Bool {
        let origin = entry.element
        guard let candidate = origin.candidate, candidate.joins == joins,
            candidate.sequenceNumber == entry.sequenceNumber, candidate.priority == entry.priority
        else { return false }
        origin.candidate = nil
        return true
    }
}
