// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension CookieJar {
    /// A stored, removed or refused cookie, or a failed save; descriptions never show values.
    public enum Change: Sendable, Hashable {
        /// A cookie was stored; `replaced` is the cookie that it replaced.
        case stored(Cookie, replaced: Cookie?)
        /// A cookie was removed.
        case removed(Cookie, Removal)
        /// A cookie was not stored.
        case refused(Cookie.Refusal)
        /// The automatic save, or the one at shutdown, failed; the changes wait for the next save. `save()` only
        /// throws.
        case fileFailed(path: String, reason: String)
        /// The number of changes before this one that were dropped, because the observer was too slow.
        case dropped(Int)

        init(_ effect: CookieTable.Effect) {
            switch effect {
            case .stored(let cookie, let replaced): self = .stored(cookie, replaced: replaced)
            case .removed(let cookie, let reason): self = .removed(cookie, reason)
            }
        }
    }

    /// The reason why a cookie was removed.
    public enum Removal: String, Sendable, Hashable, Codable, CaseIterable {
        /// It has expired, or was set with an expiry in the past. The jar reports an expiry when it next stores a
        /// cookie of the same domain, has too many cookies, or reads its file.
        case expired
        /// The jar had too many cookies.
        case evicted
        /// The program removed it, or another process that uses the same file.
        case removed
    }

    /// A new sequence of the changes from now on; each use of this property adds an observer.
    ///
    /// For each observer up to 256 changes are buffered; after that the oldest are dropped and counted. The sequence
    /// ends when the jar is released, and when the task that reads it is cancelled.
    public var changes: AsyncStream<Change> {
        let reader = Reader(self)
        return AsyncStream { await reader.buffer.next() }
    }

    typealias Buffer = EventBuffer<Change>

    struct Observer {
        weak var buffer: Buffer?
    }

    /// An observer's reference to its buffer; its release ends the subscription.
    private final class Reader: Sendable {
        let buffer = Buffer { .dropped($0) }
        private let jar: WeakJar

        init(_ jar: CookieJar) {
            self.jar = WeakJar(jar)
            jar.state.withLock { $0.observers[ObjectIdentifier(buffer)] = Observer(buffer: buffer) }
        }

        deinit {
            let key = ObjectIdentifier(buffer)
            jar.value?.state.withLock { $0.observers[key] = nil }
        }
    }

    /// A reference that does not keep the jar alive.
    private struct WeakJar: Sendable {
        private let jar: Lock<Weak>
        private struct Weak { weak var jar: CookieJar? }

        init(_ jar: CookieJar) { self.jar = Lock(Weak(jar: jar)) }

        var value: CookieJar? { jar.withLock { $0.jar } }
    }

    /// Keeps a refusal, notifies observers of it, and returns it.
    func refuse(_ refusal: Cookie.Refusal) -> Cookie.Refusal {
        state.withLock { state in
            if state.refusals.count == State.maximumRefusals { state.refusals.removeFirst() }
            state.refusals.append(refusal)
        }
        notify(.refused(refusal))
        return refusal
    }

    func notify(_ change: Change) {
        for wake in state.withLock({ $0.notify([change]) }) { wake() }
    }
}

extension CookieJar.State {
    /// Appends changes to the buffers of all observers, and returns the tasks to resume.
    func notify(_ changes: [CookieJar.Change]) -> [CookieJar.Buffer.Wake] {
        if observers.isEmpty { return [] }
        return observers.values.flatMap { observer in changes.flatMap { observer.buffer?.push($0) ?? [] } }
    }
}

extension CookieJar.Change: CustomStringConvertible {
    /// One line without values.
    public var description: String {
        switch self {
        case .stored(let cookie, nil): "stored \(cookie)"
        case .stored(let cookie, .some): "replaced \(cookie)"
        case .removed(let cookie, let reason): "removed (\(reason.rawValue)) \(cookie)"
        case .refused(let refusal): "refused: \(refusal)"
        case .fileFailed(let path, let reason):
            "cannot use the file \(path.escapingControls): \(reason.escapingControls)"
        case .dropped(let count): "dropped \(count) changes"
        }
    }
}
