// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One server as libcurl pools connections: scheme, host, port.
///
/// Holds what waits for a place there.
final class Origin {
    let host: String
    let port: UInt16
    let isSecure: Bool
    /// Whether connections to it begin with a look-up.
    let needsLookUp: Bool
    /// Transfers that hold a place, and those of them that share a connection with nobody.
    var active = 0
    var alone = 0
    /// Open sockets towards it, in use or idle, of all domains.
    var sockets = 0
    /// Open sockets without those that transfers have begun with, in each domain, by its number.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var spares: [Int] = []
    /// Transfers share connections.
    var isShared = false
    /// It is known what the first connection speaks.
    var isKnown = false
    /// How many connections its transfers were last counted to need.
    var counted = 0
    /// The server has answered by HTTP/2.
    var speaksHTTP2 = false
    /// Its sockets by their local ports, and how many transfers use one that could not be found.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var descriptors: [Int: CInt] = [:]
    /// Transfers that open a connection for others to share, and have not begun to send.
    var opening = 0
    /// Counts connections, for those that take addresses by turns; where it begins is chance, or all clients of a server
    /// would begin with the same one.
    var turn = Int.random(in: 0..<1 << 20)
    /// How many transfers share one HTTP/2 connection before there is another.
    let streamsPerConnection: Int
    var unplaced = 0
    var queue = WaitingLine<EngineTransfer>()
    /// How many in the line have not left it.
    var waiting = 0
    /// How it competes for a place, when it does.
    var call: Call?

    /// How many connections in a domain wait for a transfer; fewer than none while some are made.
    func spare(in domain: UInt32) -> Int { Int(domain) < spares.count ? spares[Int(domain)] : 0 }

    func count(_ change: Int, in domain: UInt32) {
        while spares.count <= Int(domain) { spares.append(0) }
        spares[Int(domain)] += change
    }

    /// What an origin competes with: its first in line, and whether a connection that there is serves that one.
    struct Call {
        var priority: Int
        var ticket: UInt64
        var joins: Bool
    }

    /// What one more transfer that shares a connection may do.
    enum Room {
        /// One of the connections has room.
        case joins
        /// There are fewer connections than those who are here and those who wait need.
        case opens
        /// Connections are being made for all who wait.
        case waits
    }

    init(host: String, port: UInt16, isSecure: Bool, streamsPerConnection: Int = 100) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.streamsPerConnection = min(max(1, streamsPerConnection), 1 << 20)
        needsLookUp = NameCache.needsLookUp(host)
    }

    /// How many connections those with a place need.
    var connections: Int {
        guard isShared else { return active }
        let streams = active - alone
        // Where there is none yet, the others wait for those that are being opened.
        if made == 0 { return max(connections(for: streams), opening) + alone }
        return connections(for: streams - opening) + opening + alone
    }

    /// Connections to share over which something was sent.
    private var made: Int { max(0, descriptors.count - alone) }

    /// libcurl 7.88 puts any number of transfers on a connection that is still being made, so that of those beyond the limit
    /// each either opens one or waits until one is there.
    var room: Room {
        let streams = active - alone
        let made = made
        // A socket that is not known as a connection may be one all the same.
        if made + opening == 0 && sockets <= alone { return .opens }
        let places = max(1, made) * streamsPerConnection + (made > 0 ? opening : max(0, opening - 1))
        if streams < places { return .joins }
        let coming = max(opening, sockets - descriptors.count)
        return made + coming < connections(for: streams + max(1, waiting)) ? .opens : .waits
    }

    /// How many connections one more transfer would need: one or none.
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

    /// Who is first in line, without those who have left it or joined again with another priority.
    func first() -> WaitingLine<EngineTransfer>.Place? {
        while let place = queue.first, !place.element.wire.isInLine || place.priority != place.element.wire.priority {
            queue.next()
        }
        return queue.first
    }
}

/// The origins whose first in line may have a place, by who is first there: those that need no connection for it come
/// before the others, whom a want of connections holds up.
struct CalledOrigins {
    private var joining = WaitingLine<Origin>()
    private var connecting = WaitingLine<Origin>()
    /// When stale entries are dropped that nobody would come to otherwise.
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

    /// Takes out the next one; of those that need a connection only when one is left.
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

    /// False for an entry that a newer one has made stale.
    private func take(_ place: WaitingLine<Origin>.Place, joins: Bool) -> Bool {
        let origin = place.element
        guard let call = origin.call, call.joins == joins, call.ticket == place.ticket, call.priority == place.priority
        else { return false }
        origin.call = nil
        return true
    }
}
