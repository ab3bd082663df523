// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// A DNS server over HTTPS whose messages dnspython writes, with compressed names.
struct DNSPythonServer: PeerServer {
    let instance: PeerInstance

    /// - Parameter zone: Records in the form of RFC 1035 §5, for the zone "test.".
    init(zone: String) throws {
        instance = try PeerInstance(.dnspython, [.secure], hasLargeFile: false, mark: "ready") {
            executable, folder, ports in
            let script = "\(folder)/server.py"
            try Data(Self.script.utf8).write(to: URL(filePath: script))
            try Data("$ORIGIN test.\n$TTL 300\n@ SOA ns admin 1 2 3 4 30\n@ NS ns\n\(zone)\n".utf8)
                .write(to: URL(filePath: "\(folder)/zone"))
            return [executable, "-B", "-u", script, "\(ports[.secure] ?? 0)", folder]
        }
    }

    private static let script = #"""
        import base64, os, ssl, sys, urllib.parse
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
        import dns.flags, dns.message, dns.name, dns.rcode, dns.rdatatype, dns.zone

        port, folder = int(sys.argv[1]), sys.argv[2]
        zone = dns.zone.from_file(folder + "/zone", relativize=False)

        def answer(question):
            response = dns.message.make_response(question)
            response.flags |= dns.flags.RA
            name, kind = question.question[0].name, question.question[0].rdtype
            for _ in range(8):
                node = zone.get_node(name)
                if node is None:
                    response.set_rcode(dns.rcode.NXDOMAIN)
                    break
                found = zone.get_rrset(name, kind)
                if found: response.answer.append(found)
                alias = zone.get_rrset(name, dns.rdatatype.CNAME)
                if found or not alias: break
                response.answer.append(alias)
                name = alias[0].target
            if not response.answer: response.authority.append(zone.get_rrset(zone.origin, dns.rdatatype.SOA))
            return response.to_wire()

        class Server(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                text = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)["dns"][0]
                wire = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
                body = answer(dns.message.from_wire(wire))
                self.send_response(200)
                self.send_header("Content-Type", self.headers["Accept"])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments): pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Server)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder + "/chain.pem", folder + "/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        print("ready")
        log = os.open(folder + "/error.log", os.O_WRONLY | os.O_CREAT)
        for descriptor in 1, 2: os.dup2(log, descriptor)
        server.serve_forever()

        """#
}

/// Look-ups whose messages another DNS implementation writes.
@Suite("DNS over HTTPS with dnspython", .enabledIfInstalled(.dnspython), .peer(.dnspython), .timeLimit(.minutes(5)))
struct DNSPythonTests {
    @Test func addressesAndServicesAreRead() async throws {
        let origin = try TestAuthority()
        let server = try MockServer(tls: origin.issue(hosts: ["www.test", "moved.test"])) { _ in .text("ok") }
        let dns = try DNSPythonServer(
            zone: """
                a 60 A 127.0.0.1
                alias CNAME a
                both A 127.0.0.1
                both AAAA ::1
                empty TXT "no address"
                www A 127.0.0.1
                www HTTPS 1 . alpn="h2,h3" port=\(server.port) ipv4hint=127.0.0.1
                moved HTTPS 0 www
                """)
        let resolver = DNSOverHTTPS(
            url: dns.secureURL("/dns-query"), host: "localhost",
            session: Session(trust: try CustomRoots(pem: dns.authority.certificatePEM)))
        let first = try await resolver.lookUp("a.test").get()
        #expect(first.endpoints == [SocketAddress("127.0.0.1")])
        #expect(first.lifetime == 30_000_000_000, "the SOA record limits the absence of IPv6 addresses")
        #expect(try await resolver.lookUp("alias.test").get().endpoints.map(\.ip) == ["127.0.0.1"])
        #expect(try await resolver.lookUp("both.test").get().endpoints.map(\.ip) == ["::1", "127.0.0.1"])
        for (name, words) in [("empty.test", "no address"), ("none.test", "does not exist")] {
            guard case .failure(.unknown(let text)) = await resolver.lookUp(name) else {
                Issue.record("\(name) has addresses")
                continue
            }
            #expect(text.contains(words))
        }
        for name in ["www.test", "moved.test"] {
            let endpoints = try await resolver.lookUp(name).get().endpoints
            #expect(endpoints.first == SocketAddress("127.0.0.1", port: server.port, isForDefaultPort: true), "\(name)")
        }
    }

    @Test func requestFollowsAnHTTPSRecord() async throws {
        let origin = try TestAuthority()
        let server = try MockServer(tls: origin.issue(hosts: ["moved.test"])) { _ in .text("ok") }
        let dns = try DNSPythonServer(
            zone: """
                pool A 127.0.0.1
                pool HTTPS 1 . port=\(server.port)
                moved HTTPS 0 pool
                """)
        let own = Session(trust: try CustomRoots(pem: dns.authority.certificatePEM))
        let session = Session(
            trust: try CustomRoots(pem: origin.certificatePEM),
            resolver: try .overHTTPS(dns.secureURL("/dns-query"), session: own))
        #expect(try await session.data(for: "https://moved.test/").0 == Data("ok".utf8))
    }
}
