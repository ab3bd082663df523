// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The look-up of one host by DNS messages, as a pure value: the questions, their answers, and the endpoints.
///
/// The look-up asks for the addresses of the host and for its HTTPS records (RFC 9460). If a record names
/// another host, the look-up asks for the records of that host, too.
struct DNSLookUp {
    struct Question: Hashable, Sendable {
        let name: String
        let type: DNSMessage.RecordType
    }

    /// The reason why a question has no answer.
    struct Failure: Error, Equatable {
        let text: String
    }

    typealias Answer = Result<DNSMessage, Failure>

    /// The maximum number of other hosts that the HTTPS records of one look-up may name.
    static let maximumTargets = 4
    /// The number of endpoints from HTTPS records, and of addresses of the host itself.
    static let maximumEndpoints = 32
    /// Seconds for which addresses are used if those of the other family are unknown: the next connection asks again.
    private static let partialLifetime: UInt32 = 1
    /// The maximum in seconds if other facts are unknown: the HTTPS records, or the time for which a name has none.
    private static let uncertainLifetime: UInt32 = 60

    let host: String
    private var answers: [Question: Answer] = [:]
    private var asked: Set<Question> = []

    init(_ host: String) { self.host = host.withoutTrailingDot }

    /// Whether all questions have an answer.
    var isComplete: Bool { answers.count == asked.count }

    /// Whether the host itself has an address.
    var hasAddresses: Bool { !addresses(of: host).isEmpty }

    /// Whether the host itself has an address, and only HTTPS records and their targets are unknown.
    var hasAllAddresses: Bool {
        hasAddresses && [.a, .aaaa].allSatisfy { answers[Question(name: host, type: $0)] != nil }
    }

    /// Returns the first questions.
    mutating func begin() -> [Question] { ask(host, [.a, .aaaa, .https]) }

    /// Stores an answer and returns the questions that follow from it.
    ///
    /// Only a complete message without an error proves that a record does not exist.
    mutating func receive(_ answer: Answer, to question: Question) -> [Question] {
        answers[question] = answer.flatMap { message in
            if message.isTruncated { return .failure(Failure(text: "the response is truncated")) }
            guard message.code == 0 || message.code == 3 else {
                return .failure(Failure(text: "the DNS server failed with code \(message.code)"))
            }
            return .success(message)
        }
        guard question.type == .https else { return [] }
        return services(of: question.name).flatMap { service in
            // If the record has addresses, a question for them is not necessary (RFC 9460 §7.3).
            ask(service.target, service.isAlias ? [.a, .aaaa, .https] : service.addresses.isEmpty ? [.a, .aaaa] : [])
        }
    }

    private mutating func ask(_ name: String, _ types: [DNSMessage.RecordType]) -> [Question] {
        let names = Set(asked.map(\.name))
        guard names.contains(name) || names.count <= Self.maximumTargets else { return [] }
        return types.map { Question(name: name, type: $0) }.filter { asked.insert($0).inserted }
    }

    // MARK: Results

    /// The endpoints of the host, those of its HTTPS records first, and their lifetime.
    var outcome: EngineResolver.Outcome {
        let endpoints = endpoints()
        if endpoints.isEmpty { return .failure(.unknown(failure)) }
        var lifetime = UInt32.max
        for question in asked {
            guard let message = message(question.name, question.type) else {
                let isOwnAddress = question.name == host && question.type != .https
                lifetime = min(lifetime, isOwnAddress ? Self.partialLifetime : Self.uncertainLifetime)
                continue
            }
            let found =
                question.type == .https
                ? message.services(of: question.name)?.lifetime : message.addresses(of: question.name)?.lifetime
            lifetime = min(lifetime, found ?? message.negativeLifetime ?? Self.uncertainLifetime)
        }
        return .success(
            EngineResolver.Addresses(
                endpoints, lifetime: UInt64(lifetime) * 1_000_000_000, offersHTTP3: offersHTTP3))
    }

    /// Whether the preferred service is the host itself and supports HTTP/3.
    private var offersHTTP3: Bool {
        guard let first = services(of: host).first, !first.isAlias, first.target == host else { return false }
        return (first.port ?? 443) == 443 && first.protocols.contains("h3")
    }

    private func endpoints() -> [SocketAddress] {
        let own = addresses(of: host).prefix(Self.maximumEndpoints)
        var visited: Set<String> = []
        var all: [SocketAddress] = []
        collect(byRecordsOf: host, &visited, into: &all)
        // With a record that changes nothing, a connection would attempt a failed address twice.
        all.removeAll { $0.isForDefaultPort && ($0.port ?? 443) == 443 && own.contains($0.ip) }
        return all + own.map { SocketAddress($0) }
    }

    /// The addresses of a name, IPv6 first (RFC 8305 §4).
    private func addresses(of name: String) -> [String] {
        [DNSMessage.RecordType.aaaa, .a].flatMap { type in
            message(name, type)?.addresses(of: name)?.addresses.compactMap(HostName.address) ?? []
        }
    }

    /// Adds the endpoints of the services of a name.
    ///
    /// Each name counts once, because records may refer to each other.
    private func collect(
        byRecordsOf name: String, _ visited: inout Set<String>, into endpoints: inout [SocketAddress]
    ) {
        guard visited.insert(name).inserted else { return }
        for service in services(of: name) {
            if service.isAlias {
                guard !visited.contains(service.target) else { continue }
                collect(byRecordsOf: service.target, &visited, into: &endpoints)
                add(addresses(of: service.target), port: nil, to: &endpoints)
            } else if service.supportsTCP {
                let found = addresses(of: service.target)
                let hints = service.addresses.compactMap(HostName.address)
                add(found.isEmpty ? hints : found, port: service.port, to: &endpoints)
            }
            if endpoints.count >= Self.maximumEndpoints { return }
        }
    }

    private func add(_ addresses: [String], port: UInt16?, to endpoints: inout [SocketAddress]) {
        for address in addresses where endpoints.count < Self.maximumEndpoints {
            let endpoint = SocketAddress(address, port: port, isForDefaultPort: true)
            if !endpoints.contains(endpoint) { endpoints.append(endpoint) }
        }
    }

    private func services(of name: String) -> [ServiceBinding] {
        // "." in alias mode states that there is no service (RFC 9460 §2.5.1). The addresses of the host are still
        // used.
        message(name, .https)?.services(of: name)?.services.filter { $0.target != "." } ?? []
    }

    private func message(_ name: String, _ type: DNSMessage.RecordType) -> DNSMessage? {
        try? answers[Question(name: name, type: type)]?.get()
    }

    /// The reason why the host has no addresses.
    private var failure: String {
        for type in [DNSMessage.RecordType.a, .aaaa] {
            switch answers[Question(name: host, type: type)] {
            case .failure(let failure)?: return failure.text
            case .success(let message)? where message.code == 3: return "the name does not exist"
            default: continue
            }
        }
        return "the name has no address"
    }
}

extension ServiceBinding {
    /// Whether the service supports a protocol that Curlew uses over TCP.
    var supportsTCP: Bool { allowsDefaultProtocol || protocols.contains { $0 == "h2" || $0 == "http/1.1" } }
}
