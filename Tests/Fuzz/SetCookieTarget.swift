// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Fields of cookies and HSTS, and dates: a stored cookie keeps to the rules, and a file does not change it.
func examine(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    examineDate(text)
    examinePolicy(text)
    let start = Date(timeIntervalSince1970: 1_767_225_600)
    for url in ["https://a.example.com/x/y", "http://a.example.com/x/y", "http://127.0.0.1/"] {
        let jar = CookieJar(now: { start })
        guard let site = CookieTarget(url: url) else { continue }
        do throws(Cookie.Refusal) {
            try jar.set(field: text, from: url)
        } catch {
            demand(jar.cookies.isEmpty, "a refused cookie is stored")
            demand(!error.description.unicodeScalars.contains { $0.value < 0x20 }, "a refusal has controls")
            continue
        }
        for cookie in jar.cookies { examine(cookie, site, start) }
        guard let field = jar.lookUp(url)?.field else { continue }
        demand(HeaderFields.isValidValue(field), "the field cannot be sent")
    }
}

private func examine(_ cookie: Cookie, _ site: CookieTarget, _ start: Date) {
    let length = cookie.name.utf8.count + cookie.value.utf8.count
    demand(length > 0 && length <= 4096, "a cookie has \(length) bytes")
    demand(CookieRules.matches(host: site.host, domain: cookie.domain), "the domain is \(cookie.domain)")
    demand(cookie.domain != "com" && cookie.path.utf8.first == 0x2F, "a public suffix, or no path")
    demand(!cookie.isSecure || site.isSecure, "an insecure origin has set Secure")
    if let expires = cookie.expires {
        demand(expires > start && expires.timeIntervalSince(start) <= 34_560_000, "the expiry is \(expires)")
    }
    for format in CookieJar.FileFormat.allCases where format.canExpress(cookie) {
        let bytes = CookieFile([CookieFile.Record(cookie: cookie, changed: start)]).bytes(format)
        guard let file = try? CookieFile(bytes, format, now: start), file.skipped.isEmpty, file.records.count == 1
        else {
            demand(false, "a written cookie is not read from \(format)")
            return
        }
        let read = file.records[0].cookie
        demand(read.key == cookie.key && read.value.utf8.elementsEqual(cookie.value.utf8), "\(format) changes a cookie")
        demand(read.expires == cookie.expires && read.isSecure == cookie.isSecure, "\(format) changes attributes")
    }
}

private func examineDate(_ text: String) {
    guard let seconds = CookieDate.seconds(text) else { return }
    demand(CookieDate.seconds(HTTPDate(seconds: seconds).description) == seconds, "a date changes")
}

private func examinePolicy(_ text: String) {
    let store = HSTSStore(nil)
    store.receive(text, from: "https://example.com/")
    guard let policy = StrictTransportPolicy(text) else {
        demand(store.hosts.isEmpty, "an invalid policy is stored")
        return
    }
    demand(policy.maxAge >= 0 && store.hosts.count == (policy.maxAge > 0 ? 1 : 0), "the policy is not stored")
    demand(HSTSFile.hosts(HSTSFile.bytes(store.hosts), now: Date())?.count == store.hosts.count, "the file differs")
}
