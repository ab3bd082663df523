// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// Looks up host names on its own threads; concurrent requests for a name share one look-up.
///
/// `LookUpQueue` decides when a name is looked up. libcurl's own resolver would create a thread for each look-up and
/// join it at the end of the transfer.
package final class Resolver: Sendable {
    /// The reason why a name has no addresses.
    package enum Failure: Error, Equatable {
        /// The look-up failed, with the system's message.
        case unknown(String)
        /// The system could not start a thread for the look-up.
        case noThread(errno: CInt)
    }

    /// The endpoints of a name in the order in which to try them, and how long they may be used.
    package struct Addresses: Sendable, Equatable, ExpressibleByArrayLiteral {
        package var endpoints: [SocketAddress]
        /// Nanoseconds; nil for the default.
        package var lifetime: UInt64?
        /// Whether an HTTPS record announces HTTP/3 for the addresses.
        package var offersHTTP3 = false

        package init(_ endpoints: [SocketAddress], lifetime: UInt64? = nil, offersHTTP3: Bool = false) {
            self.endpoints = endpoints
            self.lifetime = lifetime
            self.offersHTTP3 = offersHTTP3
        }

        package init(_ texts: [String]) { self.init(texts.map { SocketAddress($0) }) }

        package init(arrayLiteral elements: String...) { self.init(elements) }
    }

    package typealias Outcome = Result<Addresses, Failure>

    /// Looks up a name by code of the user.
    package typealias LookUp = @Sendable (String) async -> Outcome

    /// The identifier of a request, for ``withdraw(_:_:)``.
    package struct RequestID: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct State {
        var queue: LookUpQueue
        var callbacks: [UInt64: @Sendable (Outcome) -> Void] = [:]
        /// The running look-ups of `userLookUp`.
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var lastNumber: UInt64 = 0
        var generation = curlew_fork_generation()
    }

    /// The resolver that uses the system's name service, shared by all sessions of the process.
    package static let system = Resolver(lookUp: Resolver.systemLookUp)

    private let limits: LookUpQueue.Limits
    private let start: @Sendable (@escaping @Sendable () -> Void) -> CInt
    private let lookUp: @Sendable (String) -> Outcome
    /// Replaces the threads and their queue; nil for a resolver that uses them.
    private let userLookUp: LookUp?
    private let known: [String: [String]]
    /// The resolver for names without given addresses; nil when this resolver looks them up itself.
    private let fallback: Resolver?
    private let state: Lock<State>

    /// Creates a resolver.
    ///
    /// - Parameters:
    ///   - limits: The limits of concurrent look-ups, in total and for each session.
    ///   - start: Runs its argument on a new thread; returns 0 or errno.
    ///   - lookUp: Returns the addresses of a name in the order in which to try them; it may block.
    package init(
        limits: LookUpQueue.Limits = LookUpQueue.Limits(),
        start: @escaping @Sendable (@escaping @Sendable () -> Void) -> CInt = { startThread("curlew-resolver", $0) },
        lookUp: @escaping @Sendable (String) -> Outcome
    ) {
        self.limits = limits
        self.start = start
        self.lookUp = lookUp
        userLookUp = nil
        known = [:]
        fallback = nil
        state = Lock(State(queue: LookUpQueue(limits)))
    }

    /// Creates a resolver that looks up each name in a task of its own.
    ///
    /// The number of tasks is that of the names that transfers wait for. A withdrawn task is cancelled.
    package static func asynchronous(_ lookUp: @escaping LookUp) -> Resolver { Resolver(userLookUp: lookUp) }

    private init(userLookUp: @escaping LookUp) {
        limits = LookUpQueue.Limits()
        start = { _ in ENOSYS }
        lookUp = { _ in .failure(.noThread(errno: ENOSYS)) }
        self.userLookUp = userLookUp
        known = [:]
        fallback = nil
        state = Lock(State(queue: LookUpQueue(limits)))
    }

    private init(withFixedAddresses addresses: [String: [String]], or fallback: Resolver) {
        limits = fallback.limits
        start = fallback.start
        lookUp = fallback.lookUp
        userLookUp = nil
        known = addresses
        self.fallback = fallback
        state = Lock(State(queue: LookUpQueue(fallback.limits)))
    }

    /// Returns a resolver with fixed addresses for some names.
    ///
    /// The new resolver forwards all other names to this resolver.
    package func withFixedAddresses(_ addresses: [String: [String]]) -> Resolver {
        Resolver(withFixedAddresses: addresses, or: self)
    }

    /// The number of names that wait or are being looked up, for tests.
    package var pending: Int { fallback?.pending ?? state.withLock { $0.queue.count } }

    /// Looks up the addresses of a name and calls `callback` once.
    ///
    /// `callback` runs on a thread of the resolver. It runs before this method returns if the addresses are fixed, or
    /// if the system cannot start a thread. The limits for each session keep the names of one session from delaying
    /// those of another.
    package func find(
        _ name: String, for session: UInt64 = 0, callback: @escaping @Sendable (Outcome) -> Void
    ) -> RequestID {
        if let addresses = known[name.withoutTrailingDot] {
            callback(.success(Addresses(addresses)))
            return RequestID(number: 0)
        }
        if let fallback { return fallback.find(name, for: session, callback: callback) }
        if let userLookUp { return begin(userLookUp, name, callback) }
        let (number, actions) = state.withLock { state in
            if state.generation != curlew_fork_generation() { state = State(queue: LookUpQueue(limits)) }
            state.lastNumber += 1
            state.callbacks[state.lastNumber] = callback
            let now = Monotonic.now()
            return (state.lastNumber, state.queue.add(name, state.lastNumber, for: session, now: now))
        }
        perform(actions)
        return RequestID(number: number)
    }

    private func begin(
        _ lookUp: @escaping LookUp, _ name: String, _ callback: @escaping @Sendable (Outcome) -> Void
    ) -> RequestID {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.callbacks[state.lastNumber] = callback
            return state.lastNumber
        }
        let task = Task { [self] in
            let outcome = await lookUp(name)
            let callback = state.withLock { state in
                state.tasks[number] = nil
                return state.callbacks.removeValue(forKey: number)
            }
            callback?(outcome)
        }
        // The task may have ended, or the request may have been withdrawn.
        let isWanted = state.withLock { state in
            guard state.callbacks[number] != nil else { return false }
            state.tasks[number] = task
            return true
        }
        if !isWanted { task.cancel() }
        return RequestID(number: number)
    }

    /// Withdraws a request, so that its callback is not called; a look-up without further requests does not start.
    package func withdraw(_ name: String, _ request: RequestID) {
        if let fallback { return fallback.withdraw(name, request) }
        let task = state.withLock { state in
            state.callbacks[request.number] = nil
            state.queue.withdraw(name, request.number)
            return state.tasks.removeValue(forKey: request.number)
        }
        task?.cancel()
    }

    private func perform(_ actions: [LookUpQueue.Action]) {
        for action in actions {
            switch action {
            case .start(let name):
                let failure = start { self.work(name) }
                if failure != 0 { failWaiters(name, errno: failure) }
            case .watch:
                let failure = start { self.watch() }
                if failure != 0 { state.withLock { $0.queue.endWatch(hasThread: false) } }
            }
        }
    }

    private func failWaiters(_ name: String, errno: CInt) {
        let (failedCallbacks, actions) = state.withLock { state in
            let waiters = state.queue.threadFailed(for: name)
            return (waiters.compactMap { state.callbacks.removeValue(forKey: $0) }, state.queue.watchIfNeeded())
        }
        perform(actions)
        for callback in failedCallbacks { callback(.failure(.noThread(errno: errno))) }
    }

    private func work(_ first: String) {
        var current: String? = first
        while let name = current {
            let outcome = lookUp(name)
            let isFound = if case .success = outcome { true } else { false }
            let (callbacks, next) = state.withLock { state in
                let (waiters, next) = state.queue.finish(name, isFound: isFound, now: Monotonic.now())
                return (waiters.compactMap { state.callbacks.removeValue(forKey: $0) }, next)
            }
            for callback in callbacks { callback(outcome) }
            current = next
        }
    }

    /// Adds threads while names wait behind slow look-ups.
    private func watch() {
        let pause = UInt32(clamping: max(1, min(limits.patience / 4, 250_000_000) / 1000))
        var isWanted = true
        while isWanted {
            usleep(pause)
            let actions = state.withLock { state in
                let actions = state.queue.startPending(Monotonic.now())
                state.queue.endWatch()
                isWanted = state.queue.isWatched
                return actions
            }
            perform(actions)
        }
    }

    private static func systemLookUp(_ name: String) -> Outcome {
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
            // libcurl does not accept an IPv6 scope in a list of addresses.
            if !text.utf8.contains(UInt8(ascii: "%")) && !addresses.contains(text) { addresses.append(text) }
        }
        return addresses.isEmpty ? .failure(.unknown("no usable address")) : .success(Addresses(addresses))
    }
}

/// The name of the engine's resolver in `Curlew`, where a type of sessions has the shorter one.
package typealias EngineResolver = Resolver
