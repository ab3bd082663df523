// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension Session.Resolver {
    /// Looks up names by DNS over HTTPS (RFC 8484).
    ///
    /// ```swift
    /// let session = Session(resolver: try .overHTTPS("https://dns.example/dns-query"))
    /// ```
    ///
    /// The session uses the addresses for the lifetime that the records state. HTTPS records (RFC 9460) may name
    /// another port, other addresses or another host for https URLs with port 443. The resolver asks for IPv4, IPv6 and
    /// HTTPS records at the same time. After the first address it waits at most 1 s for those of the other family, and
    /// after both at most 50 ms for the HTTPS records.
    ///
    /// The system's name service looks up names that are not public: names without a dot, and names that end in
    /// `.local`, `.internal` or `.home.arpa`. Names that end in `.onion` are not looked up (RFC 7686). The resolver
    /// does not read `/etc/hosts`; `tcp.addresses` takes precedence.
    ///
    /// - Parameters:
    ///   - url: The https URL of the DNS server; `{?dns}` at its end is ignored. If its host is a name, the resolver of
    ///     `session` looks it up; a URL with an IP address needs no look-up.
    ///   - session: Sends the questions, over its own proxy and interface. The default is a new session with the
    ///     default configuration, a connect timeout of 3 s, a total timeout of 5 s, and neither cookies nor HSTS. Pass
    ///     a session for another evaluator, proxy, interface or timeout.
    /// - Returns: A resolver. A failed look-up fails the requests with `.cannotResolve`.
    /// - Throws: `NetworkError` of kind `.invalidRequest` in phase `preparing` for a URL that is not an https URL, and
    ///   for one with another template.
    public static func overHTTPS(_ url: String, session: Session? = nil) throws(NetworkError) -> Session.Resolver {
        let hint = "Use a URL such as https://dns.example/dns-query."
        let url = String((url.hasSuffix("{?dns}") ? url.dropLast(6) : url[...]).prefix { $0 != "#" })
        guard !url.contains("{") else {
            throw NetworkError(invalid: .url, "The URL of a DNS server must not be a template.", hint: hint)
        }
        let target = try Request(url).target()
        guard target.scheme == .https else {
            throw NetworkError(invalid: .scheme, "The URL of a DNS server must begin with https.", hint: hint)
        }
        let own =
            session
            ?? Session(cookies: nil, hsts: nil) {
                $0.timeouts.connect = .seconds(3)
                $0.timeouts.total = .seconds(5)
            }
        let service = DNSOverHTTPS(url: url, host: target.host, session: own)
        return Session.Resolver { await service.lookUp($0) }
    }
}

/// Sends the questions of look-ups to a DNS server (RFC 8484).
struct DNSOverHTTPS: Sendable {
    /// The time to wait for addresses of the other family.
    ///
    /// RFC 8305 §3 starts to connect after 50 ms and adds later addresses. A look-up has one result, which would lack a
    /// family: on a machine with the other family alone, no connection would be possible.
    private static let patienceForAddresses = Duration.seconds(1)
    /// The time to wait for HTTPS records after the addresses of both families.
    private static let patienceForRecords = Duration.milliseconds(50)

    let url: String
    let host: String
    let session: Session

    private enum Event: Sendable {
        case answer(DNSLookUp.Question, DNSLookUp.Answer)
        case patienceEnded
    }

    func lookUp(_ name: String) async -> EngineResolver.Outcome {
        if name.hasSuffix(".onion") {
            let text = "a name that ends in .onion needs a proxy for Tor, such as socks5h://127.0.0.1:9050"
            return .failure(.unknown(text))
        }
        let isPrivate = !name.contains(".") || [".local", ".internal", ".home.arpa"].contains(where: name.hasSuffix)
        if isPrivate { return await EngineResolver.system.addresses(of: name) }
        let outcome = await withTaskGroup(of: Event.self) { group in
            var lookUp = DNSLookUp(name)
            func ask(_ questions: [DNSLookUp.Question]) {
                for question in questions { group.addTask { .answer(question, await answer(to: question)) } }
            }
            ask(lookUp.begin())
            var patience = Duration.seconds(3600)
            while !lookUp.isComplete, case .answer(let question, let answer)? = await group.next() {
                ask(lookUp.receive(answer, to: question))
                guard lookUp.hasAddresses else { continue }
                let time = lookUp.hasAllAddresses ? Self.patienceForRecords : Self.patienceForAddresses
                if time >= patience { continue }
                patience = time
                group.addTask {
                    try? await ContinuousClock().wait(for: time)
                    return .patienceEnded
                }
            }
            group.cancelAll()
            return lookUp.outcome
        }
        guard case .failure(.unknown(let text)) = outcome else { return outcome }
        return .failure(.unknown("\(text) (DNS over HTTPS at \(host))"))
    }

    /// Asks the server one question.
    private func answer(to question: DNSLookUp.Question) async -> DNSLookUp.Answer {
        guard let bytes = DNSMessage.question(question.name, question.type) else {
            return .failure(.init(text: "the name is too long for DNS"))
        }
        let request = Request(
            "\(url)\(url.contains("?") ? "&" : "?")dns=\(Self.base64URL(bytes))",
            fields: [.accept: Self.mediaType],
            options: [.responseLimit(.bytes(Int64(DNSMessage.maximumLength))), .cookies(.none)])
        let (data, head): (Data, ResponseHead)
        do throws(NetworkError) { (data, head) = try await session.data(for: request) } catch {
            let message = error.message
            return .failure(.init(text: String(message.hasSuffix(".") ? message.dropLast() : message[...])))
        }
        guard head.status == .ok else {
            return .failure(.init(text: "the DNS server responded with status \(head.status.code)"))
        }
        guard head[.contentType]?.lowercased().hasPrefix(Self.mediaType) == true else {
            return .failure(.init(text: "the response is not of type \(Self.mediaType)"))
        }
        do throws(DNSMessage.Flaw) {
            var message = try DNSMessage(response: Array(data), to: question.name, question.type)
            // A cache may have kept the response for a while (RFC 8484 §5.1).
            if let age = head[.age].flatMap({ UInt32($0) }) { message.shortenLifetimes(by: age) }
            return .success(message)
        } catch {
            return .failure(.init(text: "the response \(error.rawValue)"))
        }
    }

    private static let mediaType = "application/dns-message"

    /// Returns base64 with the alphabet for URLs and without padding (RFC 4648 §5).
    static func base64URL(_ bytes: [UInt8]) -> String {
        let text = Data(bytes).base64EncodedString()
        return String(text.compactMap { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 == "=" ? nil : $0 })
    }
}

extension EngineResolver {
    /// Looks up the addresses of a name; cancellation has no effect.
    func addresses(of name: String) async -> Outcome {
        await withCheckedContinuation { continuation in
            _ = find(name) { continuation.resume(returning: $0) }
        }
    }

    /// Looks up the addresses of a name; returns nil if the task is cancelled before the look-up has ended.
    func addressesUnlessCancelled(of name: String) async -> Outcome? {
        let result = Lock<Outcome?>(nil)
        let found = Signal()
        let request = find(name) { outcome in
            result.withLock { $0 = outcome }
            found.send()
        }
        guard await found.wait(after: 0) else {
            withdraw(name, request)
            return nil
        }
        return result.withLock { $0 }
    }
}
