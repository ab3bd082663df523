// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials

// The same request direct, through an HTTP proxy, through a SOCKS proxy and over a Unix socket, with what each proxy
// saw. All servers are local; the names below .test have no address, so only a proxy reaches them.

let authority = try TestAuthority()
let server = try MockServer(tls: authority.issue(hosts: ["localhost", "api.test"])) { request in
    .text("hello, the server saw \(request.fields.count) fields")
}
let plain = try MockServer { request in .text("hello, the server saw \(request.target)") }
let http = try MockProxy(.http) { request in
    let expected = "Basic " + Data("anna:secret".utf8).base64EncodedString()
    return request.field("Proxy-Authorization") == expected
        ? .accept : .status(407, ["Proxy-Authenticate: Basic realm=\"demo\""])
}
let socks = try MockProxy(.socks, credentials: ("anna", "secret"))
let path = "/tmp/curlew-demo-\(ProcessInfo.processInfo.processIdentifier).sock"
let socket = try MockProxy(unixSocket: path, to: plain.port)
defer { try? FileManager.default.removeItem(atPath: path) }

let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) { $0.proxy = .none }
let login = Proxy.Credentials.basic("anna", "secret")
var failures = 0

/// Sends a request, and prints its result and the way it took.
@MainActor func show(_ title: String, _ request: Request, expecting kind: NetworkError.Kind? = nil) async {
    print("\n\(title)\n  \(request)")
    do throws(NetworkError) {
        let response = try await session.transfer(request).response()
        print("  \(response.head.status): \(String(decoding: response.value, as: UTF8.self))")
        print(
            "  connected to \(response.metrics.remoteAddress), proxy: \(response.metrics.proxy?.description ?? "no rule")"
        )
        if kind != nil { failures += 1 }
    } catch {
        print("  \(error)")
        if let hint = error.hint { print("  hint: \(hint)") }
        if error.kind != kind { failures += 1 }
    }
}

/// Prints the requests that a proxy has received since the last call.
func saw(_ proxy: MockProxy, from first: Int) -> Int {
    for request in proxy.requests[first...] {
        let shown = request.fields.map { $0.hasPrefix("Proxy-Authorization") ? "Proxy-Authorization: …" : $0 }
        print("  the proxy saw: \(request.method) \(request.target) \(shown)")
    }
    return proxy.requests.count
}

var (seenHTTP, seenSOCKS) = (0, 0)

await show("1. Direct", Request("https://localhost:\(server.port)/"))

let proxy = try Proxy(http.url, login)
let throughHTTP: Request.Options = [.proxy(.always(proxy))]
await show("2. Through an HTTP proxy: a tunnel", Request("https://api.test:\(server.port)/", options: throughHTTP))
seenHTTP = saw(http, from: seenHTTP)
await show(
    "3. The same without TLS: the proxy forwards it", Request("http://api.test:\(plain.port)/a", options: throughHTTP))
seenHTTP = saw(http, from: seenHTTP)

let throughSOCKS: Request.Options = [.proxy(.always(try Proxy(socks.url, login)))]
await show(
    "4. Through SOCKS 5, which looks up the name", Request("https://api.test:\(server.port)/", options: throughSOCKS))
seenSOCKS = saw(socks, from: seenSOCKS)

await show("5. Over a Unix socket", Request("http://localhost/info", options: [.unixSocket(path)]))

let wrong: Request.Options = [.proxy(.always(try Proxy(http.url, .basic("anna", "wrong"))))]
await show(
    "6. With a wrong password for the proxy", Request("https://api.test:\(server.port)/", options: wrong),
    expecting: .proxyAuthenticationRequired)

let excepting: Request.Options = [.proxy(.always(proxy, except: "localhost, 10.0.0.0/8"))]
await show("7. Excepted from the proxy", Request("https://localhost:\(server.port)/", options: excepting))

print("\nThe pool: \(await session.pool)")
for line in await session.pool.servers { print("  \(line)") }
let leaks = (server.requests + plain.requests).filter { $0.field("Proxy-Authorization") != nil }.count
print("Requests that reached a server with the password of the proxy: \(leaks)")
if failures + leaks > 0 { fatalError("\(failures) unexpected results") }
