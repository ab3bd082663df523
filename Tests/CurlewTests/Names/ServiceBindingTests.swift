// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// HTTPS records in responses.
@Suite struct ServiceBindingTests {
    private let name = "www.example.com"
    /// A pointer to the name in the question.
    private let asked: [UInt8] = [0xC0, 12]

    private func message(_ answers: [[UInt8]]) throws -> DNSMessage {
        try DNSMessage(response: DNSBytes.message(type: 65, answers: answers), to: name, .https)
    }

    /// Returns the bindings in a response of HTTPS records with `data`, in hexadecimal digits.
    private func services(_ data: String...) throws -> [ServiceBinding] {
        let records = data.map { DNSBytes.record(asked, 65, data: DNSBytes.hex($0)) }
        return try #require(try message(records).services(of: name)).services
    }

    // MARK: Vectors

    private static let target = "03 66 6f 6f 07 65 78 61 6d 70 6c 65 03 63 6f 6d 00"
    private static let otherTarget = "03 66 6f 6f 07 65 78 61 6d 70 6c 65 03 6f 72 67 00"

    /// RFC 9460 Appendix D.1 and D.2, with the numbers of the figures.
    @Test(arguments: [
        (2, "00 00 \(target)", ServiceBinding(priority: 0, target: "foo.example.com")),
        (3, "00 01 00", ServiceBinding(priority: 1, target: "www.example.com")),
        (
            4, "00 10 \(target) 00 03 00 02 00 35",
            ServiceBinding(priority: 16, target: "foo.example.com", port: 53)
        ),
        (5, "00 01 \(target) 02 9b 00 05 68 65 6c 6c 6f", ServiceBinding(priority: 1, target: "foo.example.com")),
        (
            6, "00 01 \(target) 02 9b 00 09 68 65 6c 6c 6f d2 71 6f 6f",
            ServiceBinding(priority: 1, target: "foo.example.com")
        ),
        (
            7,
            """
            00 01 \(target) 00 06 00 20 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01
            20 01 0d b8 00 00 00 00 00 00 00 00 00 53 00 01
            """,
            ServiceBinding(
                priority: 1, target: "foo.example.com",
                addresses: ["2001:db8::1", "2001:db8::53:1"].compactMap(HostName.bytes))
        ),
        (
            8,
            """
            00 01 07 65 78 61 6d 70 6c 65 03 63 6f 6d 00
            00 06 00 10 20 01 0d b8 01 22 03 44 00 00 00 00 c0 00 02 21
            """,
            ServiceBinding(
                priority: 1, target: "example.com",
                addresses: ["2001:db8:122:344::192.0.2.33"].compactMap(HostName.bytes))
        ),
        (
            9,
            """
            00 10 \(otherTarget) 00 00 00 04 00 01 00 04 00 01 00 09 02 68 32 05 68 33 2d 31 39
            00 04 00 04 c0 00 02 01
            """,
            ServiceBinding(
                priority: 16, target: "foo.example.org", protocols: ["h2", "h3-19"], addresses: [[192, 0, 2, 1]])
        ),
        (
            10, "00 10 \(otherTarget) 00 01 00 0c 08 66 5c 6f 6f 2c 62 61 72 02 68 32",
            ServiceBinding(priority: 16, target: "foo.example.org", protocols: ["f\\oo,bar", "h2"])
        ),
    ])
    func vectorsAreRead(_ figure: Int, _ data: String, _ expected: ServiceBinding) throws {
        #expect(try services(data) == [expected])
        // Without its last byte, the record is malformed.
        let short = DNSBytes.record(asked, 65, data: DNSBytes.hex(data).dropLast())
        #expect(try message([short]).services(of: name)?.services == [])
    }

    /// The cases of RFC 9460 Appendix D.3 in wire format, with the numbers of the figures.
    @Test(arguments: [
        (11, "00 7b 00 03 61 62 63 00 7b 00 03 64 65 66"), (12, "00 00 00 00"), (12, "00 01 00 00"),
        (12, "00 03 00 00"), (12, "00 04 00 00"), (12, "00 06 00 00"),
        (13, "00 01 00 03 02 68 32 00 02 00 03 61 62 63"), (15, "00 00 00 02 00 00"),
        (16, "00 00 00 04 00 7b 00 7b 00 7b 00 03 61 62 63"),
    ])
    func malformedRecordMakesAllUnusable(_ figure: Int, _ parameters: String) throws {
        #expect(try services("00 02 00 00 01 00 03 02 68 32").count == 1)
        #expect(try services("00 01 \(Self.target) \(parameters)", "00 02 00 00 01 00 03 02 68 32").isEmpty)
        #expect(try services("00 02 00 00 01 00 03 02 68 32", "00 01 \(Self.target) \(parameters)").isEmpty)
    }

    // MARK: Malformed and unusable records

    @Test(arguments: [
        // The fixed fields: missing, cut off, a compressed target.
        "", "00", "00 01", "00 01 03 66", "00 01 03 66 6f 6f", "00 01 c0 0c", "00 01 01 61 c0 0c", "00 01 c0 00",
        // Parameters that are cut off or out of order.
        "00 01 00 00", "00 01 00 00 03", "00 01 00 00 03 00", "00 01 00 00 03 00 02 00", "00 01 00 02 9b ff ff",
        "00 01 00 00 03 00 02 00 35 00 01 00 03 02 68 32", "00 01 00 02 9b 00 00 02 9a 00 00",
        // Mandatory keys: an odd length, and a wrong order.
        "00 01 00 00 00 00 03 00 01 00 00 01 00 03 02 68 32",
        "00 01 00 00 00 00 04 00 03 00 01 00 01 00 03 02 68 32 00 03 00 02 00 35",
        // Protocols: lengths beyond the end, a remainder, an empty identifier.
        "00 01 00 00 01 00 01 02", "00 01 00 00 01 00 02 02 68", "00 01 00 00 01 00 04 02 68 32 01",
        "00 01 00 00 01 00 01 00", "00 01 00 00 01 00 04 02 68 32 00",
        // Ports and addresses of wrong lengths.
        "00 01 00 00 03 00 01 35", "00 01 00 00 03 00 03 00 35 00", "00 01 00 00 04 00 03 01 02 03",
        "00 01 00 00 04 00 05 01 02 03 04 05", "00 01 00 00 06 00 04 01 02 03 04",
        "00 01 00 00 06 00 11 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
    ])
    func malformedRecordDoesNotMakeTheMessageMalformed(_ data: String) throws {
        let address = DNSBytes.record(asked, 1, data: [192, 0, 2, 1])
        let service = DNSBytes.record(asked, 65, data: DNSBytes.hex(data))
        for answers in [[address, service], [service, address]] {
            let message = try message(answers)
            let found = try #require(message.services(of: name))
            #expect(found.services.isEmpty && found.lifetime == 300)
            #expect(message.addresses(of: name)?.addresses == [[192, 0, 2, 1]])
        }
    }

    @Test(arguments: [
        // RFC 9460 Appendix D.3, figure 14, a mandatory key that is missing, and a known one that is missing.
        "00 01 00 00 00 00 02 00 7b", "00 01 00 00 00 00 02 00 03",
        // A mandatory key that is unknown, and the keys of Encrypted Client Hello.
        "00 01 00 00 00 00 02 00 7b 00 7b 00 01 61", "00 01 00 00 00 00 02 00 05 00 05 00 01 61",
        "00 01 00 00 00 00 04 00 03 00 7b 00 03 00 02 00 35 00 7b 00 00",
        // No default protocol and no other one; the port 0.
        "00 01 00 00 02 00 00", "00 01 00 00 03 00 02 00 00",
        // Targets that are not hosts: "a b", "a.b" and a line break as one label, "127.0.0.1", "a.1".
        "00 01 03 61 20 62 00", "00 01 03 61 2e 62 00", "00 01 01 0a 00", "00 01 03 31 32 37 01 30 01 30 01 31 00",
        "00 01 01 61 01 31 00",
    ])
    func unusableRecordsAreLeftOut(_ data: String) throws {
        let usable = "00 02 00 00 03 00 02 00 35"
        #expect(try services(data).isEmpty)
        #expect(try services(data, usable).map(\.port) == [53])
    }

    @Test func mandatoryKeysThatAreKnownAreUsable() throws {
        let found = try services(
            """
            00 01 00 00 00 00 0a 00 01 00 02 00 03 00 04 00 06 00 01 00 03 02 68 33 00 02 00 00 00 03 00 02 20 fb
            00 04 00 08 c0 00 02 01 c0 00 02 02 00 05 00 02 00 00
            00 06 00 10 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01
            """)
        let expected = ServiceBinding(
            priority: 1, target: name, protocols: ["h3"], allowsDefaultProtocol: false, port: 8443,
            addresses: ["192.0.2.1", "192.0.2.2", "2001:db8::1"].compactMap(HostName.bytes), hasEncryptedHello: true)
        #expect(found == [expected] && found.first?.isAlias == false)
        #expect(try services("00 01 00 00 05 00 00").first?.hasEncryptedHello == false)
    }

    @Test func protocolsAreVisibleText() throws {
        // A reserved identifier (RFC 8701), a line break, bytes that are not UTF-8, and "h2".
        let found = try services("00 01 00 00 01 00 0e 02 0a 0a 02 68 0a 02 c3 28 01 20 02 68 32")
        #expect(found.map(\.protocols) == [["h2"]])
        // The record names a protocol, so the default may be missing.
        #expect(try services("00 01 00 00 01 00 03 02 0a 0a 00 02 00 00").map(\.protocols) == [[]])
    }

    // MARK: Order and aliases

    @Test func bindingsAreSortedByPriority() throws {
        let found = try services(
            "00 03 01 63 00", "ff ff 01 65 00", "00 01 01 61 00", "00 03 01 64 00", "00 02 01 42 00")
        #expect(found.map(\.target) == ["a", "b", "c", "d", "e"])
        #expect(found.map(\.priority) == [1, 2, 3, 3, 65_535])
    }

    @Test func aliasModeHidesTheOtherRecords() throws {
        let found = try services("00 01 01 61 00", "00 00 01 62 00", "00 02 01 63 00", "00 00 01 64 00")
        #expect(found.map(\.target) == ["b", "d"] && found.allSatisfy(\.isAlias))
        // An alias to a name that is not a host hides them as well.
        #expect(try services("00 01 01 61 00", "00 00 01 20 00").isEmpty)
        // A malformed record counts even if it is hidden.
        #expect(try services("00 00 01 62 00", "00 01 00 00 03 00 00").isEmpty)
    }

    @Test func parametersInAliasModeAreIgnored() throws {
        for parameters in ["00 03 00 02 00 35", "00 00 00 02 00 7b", "00 03 00 00", "ff"] {
            #expect(try services("00 00 01 62 00 \(parameters)") == [ServiceBinding(priority: 0, target: "b")])
        }
    }

    @Test func dotStandsForTheOwnerOrForNoService() throws {
        #expect(try services("00 01 00").map(\.target) == [name])
        #expect(try services("00 00 00") == [ServiceBinding(priority: 0, target: ".")])
        let root = DNSBytes.record([0], 65, data: [0, 1, 0])
        #expect(try message([root]).services(of: ".")?.services == [])
    }

    @Test func bindingsAreFoundBehindAliases() throws {
        let alias = DNSBytes.record(asked, 5, lifetime: 50, data: DNSBytes.name("Svc2.example.net"))
        let owner = DNSBytes.name("svc2.EXAMPLE.net")
        let answers = [
            DNSBytes.record(owner, 65, lifetime: 60, data: DNSBytes.hex("00 02 00 00 03 00 02 1f 42")),
            DNSBytes.record(owner, 65, lifetime: 40, data: DNSBytes.hex("00 01 01 61 00")), alias,
            DNSBytes.record(DNSBytes.name("other.test"), 65, lifetime: 1, data: []),
        ]
        let message = try message(answers)
        let found = try #require(message.services(of: name))
        #expect(found.services.map(\.target) == ["a", "svc2.example.net"] && found.lifetime == 40)
        #expect(found.services.map(\.port) == [nil, 8002])
        #expect(try #require(message.services(of: "OTHER.test")).services.isEmpty)
        #expect(message.services(of: "a") == nil && message.addresses(of: name) == nil)
        let slow = try self.message([DNSBytes.record(owner, 65, lifetime: 60, data: [0, 1, 0]), alias])
        #expect(slow.services(of: name)?.lifetime == 50)
    }
}
