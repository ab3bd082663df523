// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

/// The cookies of one or more sessions (RFC 6265bis).
///
/// Every session has a jar in memory, unless you pass another jar or nil. A jar stores the cookies of all responses,
/// also of redirects, challenges and errors, and adds the right ones to each request. Sessions with the same jar share
/// its cookies. Any thread may use a jar.
///
/// ```swift
/// let jar = try await CookieJar(file: "cookies.txt")
/// let session = Session(cookies: jar)
/// _ = try await session.data(for: login)
/// print(jar.cookies(for: "https://example.com/account"))
/// try await jar.save()
/// ```
///
/// A jar keeps at most 180 cookies for a registrable domain with its subdomains (without libpsl: for each single
/// domain), and 3000 in all. Above the limit of a domain it removes the expired cookies of the domain first, then those
/// without `Secure`, then others; above 3000 it removes all expired cookies first, then any others. Each time the least
/// recently used cookie goes first. An expiry is at most 400 days away; session cookies stay until they are removed.
///
/// A value that is not UTF-8 is read as ISO-8859-1 and sent as UTF-8.
public final class CookieJar: Sendable {
    struct State {
        var table: CookieTable
        /// The result of the latest look-up; nil after a change.
        var latest: LookUp?
        var observers: [ObjectIdentifier: Observer] = [:]
        var file: FileState?
        var skipped: [SkippedLine] = []
        /// The latest refusals, the oldest first.
        var refusals: [Cookie.Refusal] = []
        static let maximumRefusals = 100
    }

    /// The field for the requests to a URL; an object, because each request takes a reference to it.
    final class LookUp: Sendable {
        let url: String
        let cookies: [Cookie]
        /// The value of `Cookie`; nil without cookies.
        let field: String?
        /// The time of the next expiry; nil when no cookie expires.
        let expiry: Date?

        init(_ url: String, _ cookies: [Cookie], until expiry: Date?) {
            self.url = url
            self.cookies = cookies
            self.expiry = expiry
            field = cookies.isEmpty ? nil : cookies.map(\.pair).joined(separator: "; ")
        }
    }

    let state: Lock<State>
    let revision = Revision()
    private let now: @Sendable () -> Date
    let suffixes: @Sendable () -> PublicSuffixes?
    private let delayedSave = DelayedSave<CookieJar>(
        hasChanges: { $0.state.withLock { $0.file?.hasChanges ?? false } },
        save: { jar in
            do throws(NetworkError) { try await jar.saveAndReport() } catch { return false }
            return true
        })

    /// Creates an empty jar in memory.
    public convenience init() { self.init(limits: CookieTable.Limits()) }

    init(
        limits: CookieTable.Limits = CookieTable.Limits(), file: FileState? = nil,
        now: @escaping @Sendable () -> Date = { Date() },
        suffixes: @escaping @Sendable () -> PublicSuffixes? = { PublicSuffixes.system }
    ) {
        let table = CookieTable(limits: limits) { domain in
            HostName.isAddress(domain) ? domain : suffixes()?.registrableDomain(of: domain) ?? domain
        }
        state = Lock(State(table: table, file: file))
        self.now = now
        self.suffixes = suffixes
    }

    deinit {
        for observer in state.withLock({ $0.observers.values.map(\.self) }) { observer.buffer?.finish() }
    }

    var time: Date { now() }

    // MARK: Reading

    /// All cookies that have not expired, the oldest first.
    public var cookies: [Cookie] {
        let now = now()
        return state.withLock { $0.table.all }.map(\.cookie).filter { !$0.isExpired(at: now) }
    }

    /// Returns the cookies for requests to a URL, in the order of sending: longer paths first, then older cookies.
    ///
    /// - Parameter url: An http or https URL; the list is empty for another text.
    public func cookies(for url: String) -> [Cookie] { lookUp(url)?.cookies ?? [] }

    /// Returns the cookie of a name for requests to a URL, such as the token of a form; nil without one.
    ///
    /// - Parameters:
    ///   - name: The name of the cookie.
    ///   - url: An http or https URL.
    /// - Returns: Of several cookies, the one that is sent first.
    public func cookie(named name: String, for url: String) -> Cookie? {
        // Bytes are compared: for Swift, strings of different bytes can be equal.
        cookies(for: url).first { $0.name.utf8.elementsEqual(name.utf8) }
    }

    /// The latest 100 cookies that were not stored, with the reasons; the oldest first.
    public var refusals: [Cookie.Refusal] { state.withLock { $0.refusals } }

    /// Returns the look-up for a URL; nil when the jar has no cookies for it.
    func lookUp(_ url: String) -> LookUp? {
        if revision.isEmpty { return nil }
        let latest = state.withLock { $0.latest }
        if let latest, latest.url == url, latest.expiry.map({ $0 > now() }) ?? true {
            return latest.field == nil ? nil : latest
        }
        guard let target = CookieTarget(url: url) else { return nil }
        let made = state.withLock { state in
            let (cookies, expiry) = state.table.cookies(for: target, at: now())
            let made = LookUp(url, cookies, until: expiry)
            state.latest = made
            return made
        }
        return made.field == nil ? nil : made
    }

    // MARK: Changing

    /// Adds a cookie, or replaces the one with the same name, domain, path and `isHostOnly`.
    ///
    /// If `cookie` has expired, the jar only removes the old cookie. It limits the expiry to 400 days from now.
    /// - Throws: ``Cookie/Refusal`` for a cookie that breaks a rule, which ``changes`` and ``refusals`` also report.
    public func set(_ cookie: Cookie) throws(Cookie.Refusal) {
        do throws(Cookie.Refusal.Reason) {
            try CookieRules.checkMade(cookie, suffixes())
            // A server would read such a text as a name and a value.
            if cookie.name.isEmpty, cookie.value.utf8.contains(UInt8(ascii: "=")) { throw .separator }
            try store(cookie.limited(at: now()), isSecure: true)
        } catch {
            throw refuse(Cookie.Refusal(error, name: cookie.name, host: cookie.domain, domain: cookie.domain))
        }
    }

    /// Stores the cookie of a `Set-Cookie` field, as if a response had contained it.
    ///
    /// - Parameters:
    ///   - field: The value of the field, such as "sid=31d4; Path=/; Secure".
    ///   - url: The http or https URL of the request.
    /// - Throws: ``Cookie/Refusal`` for a cookie that breaks a rule, which ``changes`` and ``refusals`` also report;
    ///   its reason is `.invalidDomain` for an invalid URL.
    public func set(field: String, from url: String) throws(Cookie.Refusal) {
        guard let target = CookieTarget(url: url) else {
            throw refuse(Cookie.Refusal(.invalidDomain, name: "", host: redactedURL(url)))
        }
        try receive(field, from: target)
    }

    private func receive(_ field: String, from target: CookieTarget) throws(Cookie.Refusal) {
        var domain: String?
        do throws(Cookie.Refusal.Reason) {
            let parsed = try SetCookie(field)
            domain = parsed.domain
            let cookie = try CookieRules.cookie(parsed, from: target, suffixes: suffixes(), now: now())
            try store(cookie, isSecure: target.isSecure)
        } catch {
            let name = SetCookie.name(in: field)
            throw refuse(Cookie.Refusal(error, name: name, host: target.host, domain: domain))
        }
    }

    /// Loads the list of public suffixes on a disk thread, unless it is loaded already.
    func loadSuffixes() async {
        if PublicSuffixes.isLoaded { return }
        let suffixes = suffixes
        _ = await DiskThread.sharing.value { _ = suffixes() }
    }

    /// Stores the cookies of a response; ``changes`` reports the refused ones.
    func receive(_ head: ResponseHead, from url: String) {
        guard let target = CookieTarget(url: url) else { return }
        for field in head.fields.values(for: .setCookie) { try? receive(field, from: target) }
    }

    private func store(_ cookie: Cookie, isSecure: Bool) throws(Cookie.Refusal.Reason) {
        let now = now()
        try change { state throws(Cookie.Refusal.Reason) in
            let effects = try state.table.store(cookie, isSecure: isSecure, at: now)
            // The file may have a cookie that this jar does not know yet.
            if cookie.isExpired(at: now) { state.file?.note(cookie.key, nil, at: now) }
            state.file?.note(effects, at: now)
            return effects
        }
    }

    /// Removes the cookie with the same name, domain, path and `isHostOnly`; the value need not be the same.
    ///
    /// - Returns: Whether the jar had such a cookie.
    @discardableResult
    public func remove(_ cookie: Cookie) -> Bool { !remove(.cookie(cookie.key)).isEmpty }

    /// Removes all cookies.
    public func removeAll() { remove(.all) }

    /// Removes the cookies of a domain and of its subdomains.
    ///
    /// - Parameter domain: A domain such as "example.com", which also removes the cookies of "www.example.com".
    public func removeAll(ofDomain domain: String) {
        let domain = domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
        remove(.domain(HostName.key(domain) ?? domain))
    }

    /// Removes the cookies without an expiry, as browsers do when they are closed.
    public func removeSessionCookies() { remove(.session) }

    @discardableResult
    private func remove(_ selection: Selection) -> [Cookie] {
        let now = now()
        var removed: [Cookie] = []
        change { state in
            removed = state.table.removeAll(where: selection.contains)
            state.file?.note(selection, at: now)
            return removed.map { .removed($0, .removed) }
        }
        return removed
    }

    /// A set of cookies that the program removes.
    enum Selection: Sendable, Equatable {
        case all, session
        case domain(String)
        case cookie(Cookie.Key)

        func contains(_ cookie: Cookie) -> Bool {
            switch self {
            case .all: true
            case .session: cookie.isSession
            case .domain(let domain): CookieRules.matches(host: cookie.domain, domain: domain)
            case .cookie(let key): cookie.key == key
            }
        }
    }

    /// Changes the state, and notifies observers of the effects.
    func change<Failure: Error>(
        _ body: (inout State) throws(Failure) -> [CookieTable.Effect]
    ) throws(Failure) {
        let (wakes, mustSave) = try state.withLock { state throws(Failure) in
            let effects = try body(&state)
            let mustSave = state.file?.hasChanges ?? false
            if effects.isEmpty { return ([Buffer.Wake](), mustSave) }
            state.latest = nil
            revision.advance(entries: state.table.count)
            return (state.notify(effects.map { Change($0) }), mustSave)
        }
        for wake in wakes { wake() }
        if mustSave { delayedSave.schedule(self) }
    }
}

extension CookieJar: CustomStringConvertible, CustomReflectable {
    /// The number of cookies and at most ten of their domains, without names and values of cookies.
    public var description: String {
        let cookies = cookies
        let domains = Set(cookies.map(\.domain)).sorted().prefix(10).joined(separator: ", ")
        return "CookieJar(\(cookies.count) cookies\(domains.isEmpty ? "" : " of \(domains)"))"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
