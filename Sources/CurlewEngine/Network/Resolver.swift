// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Looks up host names on a few threads of its own: the process asks for each name once at a time.
///
/// `LookUpQueue` says which name is looked up when.
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

    private struct State {
        var queue: LookUpQueue
        var tells: [UInt64: @Sendable (Answer) -> Void] = [:]
        var lastNumber: UInt64 = 0
        var generation = curlew_fork_generation()
    }

    /// The system's name service, for all sessions of the process.
    package static let system = Resolver(lookUp: Resolver.ask)

    private let limits: LookUpQueue.Limits
    private let start: @Sendable (@escaping @Sendable () -> Void) -> CInt
    private let lookUp: @Sendable (String) -> Answer
    private let known: [String: [String]]
    /// Who looks up what is not known; nil when this one does.
    private let others: Resolver?
    private let state: Lock<State>

    /// - Parameters:
    ///   - limits: How many names are looked up at once, and for whom.
    ///   - start: Runs its argument on a new thread and gives 0, or errno.
    ///   - lookUp: Finds the addresses of a name, in the order to try them; it may block.
    package init(
        limits: LookUpQueue.Limits = LookUpQueue.Limits(),
        start: @escaping @Sendable (@escaping @Sendable () -> Void) -> CInt = { startThread("curlew-resolver", $0) },
        lookUp: @escaping @Sendable (String) -> Answer
    ) {
        self.limits = limits
        self.start = start
        self.lookUp = lookUp
        known = [:]
        others = nil
        state = Lock(State(queue: LookUpQueue(limits)))
    }

    private init(knowing addresses: [String: [String]], or others: Resolver) {
        limits = others.limits
        start = others.start
        lookUp = others.lookUp
        known = addresses
        self.others = others
        state = Lock(State(queue: LookUpQueue(others.limits)))
    }

    /// The same, but for names whose addresses are given.
    ///
    /// It looks up the others together with this one.
    package func knowing(_ addresses: [String: [String]]) -> Resolver { Resolver(knowing: addresses, or: self) }

    /// How many names wait or are being looked up, for tests.
    package var pending: Int { others?.pending ?? state.withLock { $0.queue.count } }

    /// Finds the addresses of a name and tells them once, on a thread of the resolver or, when the system gives it none,
    /// before this returns.
    ///
    /// Names of one session wait for each other rather than for those of another one.
    package func find(
        _ name: String, for session: UInt64 = 0, tell: @escaping @Sendable (Answer) -> Void
    ) -> Ticket {
        if let addresses = known[name.withoutFinalDot] {
            tell(.success(addresses))
            return Ticket(number: 0)
        }
        if let others { return others.find(name, for: session, tell: tell) }
        let (number, actions) = state.withLock { state in
            if state.generation != curlew_fork_generation() { state = State(queue: LookUpQueue(limits)) }
            state.lastNumber += 1
            state.tells[state.lastNumber] = tell
            let now = Monotonic.now()
            return (state.lastNumber, state.queue.ask(name, state.lastNumber, for: session, now: now))
        }
        carryOut(actions)
        return Ticket(number: number)
    }

    /// Makes sure that nobody is told any more; a look-up that nobody wants does not begin.
    package func withdraw(_ name: String, _ ticket: Ticket) {
        if let others { return others.withdraw(name, ticket) }
        state.withLock { state in
            state.tells[ticket.number] = nil
            state.queue.withdraw(name, ticket.number)
        }
    }

    private func carryOut(_ actions: [LookUpQueue.Action]) {
        for action in actions {
            switch action {
            case .start(let name):
                let failure = start { self.work(name) }
                if failure != 0 { strand(name, errno: failure) }
            case .watch:
                let failure = start { self.watch() }
                if failure != 0 { state.withLock { $0.queue.endWatch(hasThread: false) } }
            }
        }
    }

    private func strand(_ name: String, errno: CInt) {
        let (stranded, actions) = state.withLock { state in
            let askers = state.queue.threadFailed(for: name)
            return (askers.compactMap { state.tells.removeValue(forKey: $0) }, state.queue.watchIfNeeded())
        }
        carryOut(actions)
        for tell in stranded { tell(.failure(.noThread(errno: errno))) }
    }

    private func work(_ first: String) {
        var current: String? = first
        while let name = current {
            let answer = lookUp(name)
            let isFound = if case .success = answer { true } else { false }
            let (tells, next) = state.withLock { state in
                let (askers, next) = state.queue.finish(name, isFound: isFound, now: Monotonic.now())
                return (askers.compactMap { state.tells.removeValue(forKey: $0) }, next)
            }
            for tell in tells { tell(answer) }
            current = next
        }
    }

    /// Adds threads while names wait for look-ups that take long.
    private func watch() {
        let pause = UInt32(clamping: max(1, min(limits.patience / 4, 250_000_000) / 1000))
        var isWanted = true
        while isWanted {
            usleep(pause)
            let actions = state.withLock { state in
                let actions = state.queue.grow(Monotonic.now())
                state.queue.endWatch()
                isWanted = state.queue.isWatched
                return actions
            }
            carryOut(actions)
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
