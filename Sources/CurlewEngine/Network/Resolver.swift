// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Looks up host names on a few threads of its own: the process asks for each name once at a time.
///
/// libcurl would make a thread for each look-up, and join it when the transfer is over.
package final class Resolver: Sendable {
    /// Why a name has no addresses.
    package enum Failure: Error, Equatable {
        /// In the system's words.
        case unknown(String)
        /// Nobody could look: the system gives no thread.
        case noThread(errno: CInt)
    }

    package typealias Answer = Result<[String], Failure>

    /// What a caller gets to withdraw with.
    package struct Ticket: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct LookUp {
        var askers: [(number: UInt64, tell: @Sendable (Answer) -> Void)] = []
        var isRunning = false
    }

    private struct State {
        var lookUps: [String: LookUp] = [:]
        /// Names whose look-up has not begun, in the order they came; withdrawn ones are skipped.
        var line: [String] = []
        var threads = 0
        var lastNumber: UInt64 = 0
        var generation = curlew_fork_generation()
    }

    /// The system's name service, for all sessions of the process.
    package static let system = Resolver(lookUp: Resolver.ask)

    private let most: Int
    private let start: @Sendable (@escaping @Sendable () -> Void) -> CInt
    private let lookUp: @Sendable (String) -> Answer
    private let known: [String: [String]]
    /// Who looks up what is not known; nil when this one does.
    private let others: Resolver?
    private let state = Lock(State())

    /// - Parameters:
    ///   - threads: How many names are looked up at once, at most.
    ///   - start: Runs its argument on a new thread and gives 0, or errno.
    ///   - lookUp: Finds the addresses of a name, in the order to try them; it may block.
    package init(
        threads: Int = 16,
        start: @escaping @Sendable (@escaping @Sendable () -> Void) -> CInt = { startThread("curlew-resolver", $0) },
        lookUp: @escaping @Sendable (String) -> Answer
    ) {
        most = threads
        self.start = start
        self.lookUp = lookUp
        known = [:]
        others = nil
    }

    private init(knowing addresses: [String: [String]], or others: Resolver) {
        most = others.most
        start = others.start
        lookUp = others.lookUp
        known = addresses
        self.others = others
    }

    /// The same, but for names whose addresses are given.
    ///
    /// It looks up the others together with this one.
    package func knowing(_ addresses: [String: [String]]) -> Resolver { Resolver(knowing: addresses, or: self) }

    /// How many names wait or are being looked up, for tests.
    package var pending: Int { others?.pending ?? state.withLock { $0.lookUps.count } }

    /// Finds the addresses of a name and tells them once, on a thread of the resolver or, when the system gives it none,
    /// before this returns.
    package func find(_ name: String, tell: @escaping @Sendable (Answer) -> Void) -> Ticket {
        if let addresses = known[name.withoutFinalDot] {
            tell(.success(addresses))
            return Ticket(number: 0)
        }
        if let others { return others.find(name, tell: tell) }
        let (ticket, mustStart) = state.withLock { state in
            if state.generation != curlew_fork_generation() { state = State() }
            state.lastNumber += 1
            let number = state.lastNumber
            let isNew = state.lookUps[name] == nil
            state.lookUps[name, default: LookUp()].askers.append((number, tell))
            if isNew { state.line.append(name) }
            let mustStart = isNew && state.threads < most
            if mustStart { state.threads += 1 }
            return (Ticket(number: number), mustStart)
        }
        guard mustStart else { return ticket }
        let failure = start { self.work() }
        guard failure != 0 else { return ticket }
        let stranded = state.withLock { state -> [LookUp] in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            // Nobody is there to look for those who came in the meantime either.
            defer { state.line = [] }
            return state.line.compactMap { state.lookUps.removeValue(forKey: $0) }
        }
        for asker in stranded.flatMap(\.askers) { asker.tell(.failure(.noThread(errno: failure))) }
        return ticket
    }

    /// Makes sure that nobody is told any more; a look-up that nobody wants does not begin.
    package func withdraw(_ name: String, _ ticket: Ticket) {
        if let others { return others.withdraw(name, ticket) }
        state.withLock { state in
            state.lookUps[name]?.askers.removeAll { $0.number == ticket.number }
            if let left = state.lookUps[name], left.askers.isEmpty, !left.isRunning {
                state.lookUps[name] = nil
                state.line.removeAll { $0 == name }
            }
        }
    }

    private func work() {
        while let name = next() {
            let answer = lookUp(name)
            let askers = state.withLock { $0.lookUps.removeValue(forKey: name)?.askers ?? [] }
            for asker in askers { asker.tell(answer) }
        }
    }

    /// The name to look up next; nil ends the thread.
    private func next() -> String? {
        state.withLock { state in
            guard !state.line.isEmpty else {
                state.threads -= 1
                return nil
            }
            let name = state.line.removeFirst()
            state.lookUps[name]?.isRunning = true
            return name
        }
    }

    private static func ask(_ name: String) -> Answer {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, nil, &hints, &list)
        guard code == 0 else {
            let text = code == EAI_SYSTEM ? String(cString: strerror(errno)) : String(cString: gai_strerror(code))
            return .failure(.unknown(text))
        }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var buffer = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var entry = list
        while let current = entry {
            entry = current.pointee.ai_next
            let length = socklen_t(buffer.count)
            guard
                getnameinfo(
                    current.pointee.ai_addr, current.pointee.ai_addrlen, &buffer, length, nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            let text = buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
            // libcurl reads no scope in a list of addresses.
            if !text.utf8.contains(UInt8(ascii: "%")) && !addresses.contains(text) { addresses.append(text) }
        }
        return addresses.isEmpty ? .failure(.unknown("no usable address")) : .success(addresses)
    }
}
