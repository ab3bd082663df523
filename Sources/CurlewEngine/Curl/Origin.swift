// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A server as libcurl pools connections: scheme, host and port.
///
/// It holds the queue of the transfers that wait for a slot.
final class Origin {
    let host: String
    let port: UInt16
    let isSecure: Bool
    /// Whether new connections need a look-up first.
    let needsLookUp: Bool
    /// Transfers that hold a slot, and those of them that use their connection exclusively.
    var active = 0
    var alone = 0
    /// Open sockets to the origin in all domains, in use or idle.
    var sockets = 0
    /// Open sockets minus the transfers that were started, for each domain, by its number.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var spares: [Int] = []
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
    var descriptors: [Int: CInt] = [:]
    /// Transfers that open a connection for others to share, and have not begun to send.
    var opening = 0
    /// Counts connections, for the round-robin order of addresses; it starts at a random number, because otherwise all
    /// clients of a server would start with the same address.
    var turn = Int.random(in: 0..<1 << 20)
    /// The number of transfers that share one HTTP/2 connection before another one is opened.
    let streamsPerConnection: Int
    var unplaced = 0
    var queue = WaitingLine<EngineTransfer>()
    /// The number of transfers in the queue, without stale entries.
    var waiting = 0
    /// The candidate for the next slot; nil while the origin does not compete for one.
    var call: Call?

    /// Returns the number of connections in a domain that are free for a transfer; it is negative while connections are
    /// being made.
    func spare(in domain: UInt32) -> Int { Int(domain) < spares.count ? spares[Int(domain)] : 0 }

    func count(_ change: Int, in domain: UInt32) {
        while spares.count <= Int(domain) { spares.append(0) }
        spares[Int(domain)] += change
    }

    /// The first transfer in the queue of an origin, and whether an existing connection can serve it.
    struct Call {
        var priority: Int
        var ticket: UInt64
        var joins: Bool
    }

    /// The options of another transfer that may share a connection.
    enum Room {
        /// The transfer joins a connection that has capacity.
        case joins
        /// The transfer opens a connection, because there are fewer than the running and waiting transfers need.
        case opens
        /// The transfer waits, because enough connections are being made for all waiting transfers.
        case waits
    }

    init(host: String, port: UInt16, isSecure: Bool, streamsPerConnection: Int = 100) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.streamsPerConnection = min(max(1, streamsPerConnection), 1 << 20)
        needsLookUp = NameCache.needsLookUp(host)
    }

    /// The number of connections that the transfers with a slot need.
    var connections: Int {
        guard isShared else { return active }
        let streams = active - alone
        // Before the first connection is made, the other transfers wait for those that are being opened.
        if made == 0 { return max(connections(for: streams), opening) + alone }
        return connections(for: streams - opening) + opening + alone
    }

    /// Shared connections over which a request was sent.
    private var made: Int { max(0, descriptors.count - alone) }

    /// The option of another transfer that may share a connection.
    ///
    /// libcurl 7.88 puts any number of transfers on a connection that is still being made, so each transfer beyond the
    /// limit either opens a connection or waits for one.
    var room: Room {
        let streams = active - alone
        let made = made
        // An open socket may be a usable connection although its local port is not known yet.
        if made + opening == 0 && sockets <= alone { return .opens }
        let places = max(1, made) * streamsPerConnection + (made > 0 ? opening : max(0, opening - 1))
        if streams < places { return .joins }
        let coming = max(opening, sockets - descriptors.count)
        return made + coming < connections(for: streams + max(1, waiting)) ? .opens : .waits
    }

    /// Returns the number of connections that one more transfer would need: one or zero.
    func more(for transfer: EngineTransfer) -> Int {
        guard isShared && !transfer.isAlone, room != .opens else { return 1 }
        return connections(for: active - alone + 1) - connections(for: active - alone)
    }

    private func connections(for streams: Int) -> Int {
        (streams + streamsPerConnection - 1) / streamsPerConnection
    }

    func forgetOpening(_ transfer: EngineTransfer) {
        guard transfer.wire.opensConnection else { return }
        transfer.wire.opensConnection = false
        opening -= 1
    }

    /// Returns the first entry of the queue, after removing transfers that left it or joined again with another
    /// priority.
    func first() -> WaitingLine<EngineTransfer>.Place? {
        while let place = queue.first, !place.element.wire.isInLine || place.priority != place.element.wire.priority {
            queue.next()
        }
        return queue.first
    }
}

/// The origins whose first transfer may get a slot, ordered by these transfers.
///
/// Origins that need no new connection come first, because a lack of connections delays only the others.
struct CalledOrigins {
    private var joining = WaitingLine<Origin>()
    private var connecting = WaitingLine<Origin>()
    /// The number of entries at which stale ones are removed; most stale entries would otherwise stay for ever.
    private var most = 64

    var isEmpty: Bool { joining.isEmpty && connecting.isEmpty }

    mutating func call(_ origin: Origin) {
        guard let first = origin.first() else { return }
        let joins = origin.more(for: first.element) == 0
        if let call = origin.call, call.joins || !joins,
            !first.isBefore(priority: call.priority, ticket: call.ticket)
        {
            return
        }
        origin.call = Origin.Call(priority: first.priority, ticket: first.ticket, joins: joins)
        if joins {
            joining.join(origin, priority: first.priority, ticket: first.ticket)
        } else {
            connecting.join(origin, priority: first.priority, ticket: first.ticket)
            if connecting.count > most {
                connecting.removeAll { $0.call?.joins != false || $0.call?.priority != $1 }
                most = max(64, 2 * connecting.count)
            }
        }
    }

    /// Removes and returns the next origin; an origin that needs a connection only if one is left.
    mutating func next(connectionsLeft: Int) -> Origin? {
        while let place = joining.first {
            joining.next()
            if take(place, joins: true) { return place.element }
        }
        while let place = connecting.first {
            if place.element.call?.joins == false, place.element.call?.ticket == place.ticket, connectionsLeft < 1 {
                return nil
            }
            connecting.next()
            if take(place, joins: false) { return place.element }
        }
        return nil
    }

    /// Returns false for a stale entry, which a newer one has replaced.
    private func take(_ place: WaitingLine<Origin>.Place, joins: Bool) -> Bool {
        let origin = place.element
        guard let call = origin.call, call.joins == joins, call.ticket == place.ticket, call.priority == place.priority
        else { return false }
        origin.call = nil
        return true
    }
}
