// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials

// The snippets about proxies, names and sockets, compiled as they are shown.

private struct Registry {
    func addresses(of host: String) async throws -> [String] { [] }
}

private func proxies(password: String, response: Response<Data>) throws {
    let proxy = try Proxy("http://proxy.example.com:3128", .basic("anna", password))
    let session = Session { $0.proxy = .always(proxy, except: "localhost, 10.0.0.0/8, .example.com") }
    _ = session
    print(response.metrics.proxy.map(\.description) ?? "no rule")  // http://proxy.example.com:3128 (https_proxy)
}

private func credentials(password: String) throws {
    let proxy = try Proxy("http://proxy.example.com:3128", .digest("anna", password))
    _ = proxy
}

private func policies(request: Request) throws {
    var request = request
    let session = Session { $0.proxy = .none }
    request.options.proxy = .always(try Proxy("socks5h://127.0.0.1:1080"))
    _ = (session, request)
}

private func changedEnvironment(ours: String) throws {
    let roots = try CustomRoots(pem: ours)
    let session = Session { $0.proxy = .environment { $0.trust = roots } }
    _ = session
}

private func routing() throws {
    let inside = try Proxy("http://proxy.corp.example:3128")
    let tor = try Proxy("socks5h://127.0.0.1:9050")
    let session = Session {
        $0.proxy = .custom { request in
            if request.url.contains(".onion") { return tor }
            return request.url.hasPrefix("https://") ? inside : nil
        }
    }
    _ = session
}

private func secureProxy(ours: String, certificate: String, key: String) throws {
    var proxy = try Proxy("https://proxy.corp.example:8443", trust: CustomRoots(pem: ours))
    proxy.identity = try ClientIdentity(certificates: certificate, key: key)
    proxy.fields = ["X-Department": "billing"]
    _ = proxy
}

private func unixSockets() async throws {
    let docker = Client("http://localhost").with { $0.options = [.unixSocket("/var/run/docker.sock")] }
    let version = try await docker.get("version", as: JSONValue.self)
    print(version["ApiVersion"]?.asString ?? "unknown")
}

private func names(registry: Registry) {
    let session = Session(
        resolver: .custom { host in
            Session.Resolver.Addresses(try await registry.addresses(of: host), lifetime: .seconds(30))
        })
    _ = session
}

private func secureDNS() throws {
    let session = Session(resolver: try .overHTTPS("https://dns.example/dns-query"))
    _ = session
}

private func alternatives(session: Session) async throws {
    let (data, _) = try await session.data(for: "https://example.com/")
    print(data.count, session.alternativeServices(of: "https://example.com/"))  // 1256 [h3 example.com:443]
}

private func http3() async throws {
    let session = Session { $0.http.version = .http3 }
    let response = try await session.transfer("https://example.com/").response()
    print(response.metrics.version, response.metrics.withoutHTTP3 ?? "")
    // HTTP/2 libcurl 7.88.1 does not support HTTP/3
}

private func priorities(request: Request) {
    var request = request
    request.fields[.priority] = Request.Urgency(1).fieldValue
    let api = Client("https://api.example.com").with {
        $0.fields = [.priority: Request.Urgency(5, isIncremental: true)]
    }
    request.options.trafficClass = .background
    _ = (request, api)
}

private func sockets() {
    let session = Session {
        $0.tcp.interface = "eth0"
        $0.tcp.forbiddenInterfaces = [.cellular, .named("wwan*")]
        $0.tcp.trafficClass = .interactive
        $0.limits.requestsPerConnection = 1000
        $0.http.ping = .init(interval: .seconds(30), limit: .seconds(5))
    }
    _ = session
}

private func pool(session: Session) async throws {
    try await session.preconnect(to: "https://api.example.com/", connections: 4)
    let pool = await session.pool
    print(pool.open, pool.idle, pool.queued)
    for await pool in session.poolChanges() where pool.queued > 0 {
        print(pool.servers.map(\.description).joined(separator: "\n"))
    }
}

private func settings() throws {
    let settings = #"{"timeouts": {"connect": 3}, "proxy": "none", "limits": {"connections": 20}}"#
    let session = Session(try Session.Configuration(json: settings.utf8))
    var configuration = Session.Configuration.default
    try configuration.apply(environment: ProcessInfo.processInfo.environment)
    _ = session
}

private func mockProxy() async throws {
    let server = try MockServer { _ in .text("hello") }
    let proxy = try MockProxy(.http)
    // … a request to http://server.test:\(server.port)/ through proxy.url …
    print(proxy.requests[0].target)  // http://server.test:34567/
    _ = server
}
