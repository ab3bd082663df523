// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport
import CurlewShims
import Glibc

/// The threads of one server; each thread is joined exactly once, by the method that removes it from `joinable`.
final class ThreadGroup: Sendable {
    private struct State {
        var running: Set<pthread_t> = []
        var joinable: Set<pthread_t> = []
        var finished: [pthread_t] = []
        var isClosed = false
    }

    /// The argument of a thread's start function.
    private final class Start: Sendable {
        let group: ThreadGroup
        let body: @Sendable () -> Void

        init(group: ThreadGroup, body: @escaping @Sendable () -> Void) {
            self.group = group
            self.body = body
        }
    }

    private let state = Lock(State())
    /// The number of calls that have joined threads; the lock is held by the call that joins them.
    private let joins = Lock(0)

    /// The stack size in bytes.
    ///
    /// 512 KiB is enough for a TLS handshake and for the large frames of a sanitizer build. Most of it is only address
    /// space, so hundreds of threads are cheap.
    private static let stackSize = 512 * 1024

    /// Starts a thread; returns false if the group is closed or the system cannot create another thread.
    func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        let start = Unmanaged.passRetained(Start(group: self, body: body))
        let started = state.withLock { state -> Bool in
            guard !state.isClosed, let thread = Self.create(start.toOpaque()) else { return false }
            state.running.insert(thread)
            state.joinable.insert(thread)
            return true
        }
        if !started { start.release() }
        return started
    }

    /// Joins the threads that have already ended, so it never waits long.
    func reap() {
        let ended = state.withLock { state -> [pthread_t] in
            let ended = state.finished.filter(state.joinable.contains)
            state.joinable.subtract(ended)
            state.finished = []
            return ended
        }
        for thread in ended { pthread_join(thread, nil) }
    }

    /// Refuses new threads and waits until all threads have ended.
    ///
    /// On a thread of the group it does not wait, because a thread cannot wait for itself.
    func close() {
        let own = pthread_self()
        let isOwn = state.withLock { state -> Bool in
            state.isClosed = true
            return state.running.contains(own)
        }
        if isOwn { return }
        joins.withLock { joins in
            joins += 1
            let threads = state.withLock { state -> Set<pthread_t> in
                defer { state.joinable = [] }
                return state.joinable
            }
            for thread in threads { pthread_join(thread, nil) }
        }
    }

    /// Detaches the remaining threads, because no caller will join them.
    func detach() {
        let threads = state.withLock { state -> Set<pthread_t> in
            defer { state.joinable = [] }
            return state.joinable
        }
        for thread in threads { pthread_detach(thread) }
    }

    private func ended() {
        let own = pthread_self()
        state.withLock { state in
            state.running.remove(own)
            if state.joinable.contains(own) { state.finished.append(own) }
        }
    }

    private static func create(_ argument: UnsafeMutableRawPointer) -> pthread_t? {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, { ThreadGroup.main($0) }, argument)
        return code == 0 ? thread : nil
    }

    private static func main(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let argument else { return nil }
        // Block SIGPIPE, because OpenSSL writes without MSG_NOSIGNAL; other signals belong to the test's threads.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        ended(after: Unmanaged<Start>.fromOpaque(argument).takeRetainedValue())
        return nil
    }

    private static func ended(after start: consuming Start) {
        let group = start.group
        start.body()
        _ = consume start
        group.ended()
    }
}
