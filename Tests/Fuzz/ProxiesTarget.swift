// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Proxies in the environment: lists of exceptions and URLs.
///
/// The last line of the input is a host, the rest is both a list and the URL of a proxy.
func examine(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let first = lines.dropLast().joined(separator: "\n")
    examineURL(first)
    guard let last = lines.last, let host = HostName.key(last) else { return }
    let list = ProxyExceptions(first)
    for port: UInt16 in [80, 443] {
        let found = list.entry(for: host, port: port)
        if let found { demand(first.contains(found), "the entry \(found) is not in the list") }
        demand(list.entry(for: host + ".", port: port) == found, "a dot at the end of the host matters")
        demand(ProxyExceptions(first + ",*").entry(for: host, port: port) != nil, "the asterisk does not cover \(host)")
        let own = host.contains(":") ? "[\(host)]" : host
        demand(ProxyExceptions(own).entry(for: host, port: port) != nil, "the host \(host) does not cover itself")
        let isAddress = HostName.bytes(ofAddress: host) != nil
        let isBelow = ProxyExceptions(own).entry(for: "www.\(host)", port: port) != nil
        demand(isBelow != isAddress, "\(host) covers the wrong hosts below it")
        let isSibling = ProxyExceptions(own).entry(for: "x\(host)", port: port) != nil
        demand(!isSibling || isAddress, "\(host) covers x\(host)")
    }
}

private func examineURL(_ text: String) {
    guard let url = try? ProxyURL(text) else { return }
    let proxy = Proxy(url)
    guard let again = try? ProxyURL(proxy.url) else { fatalError("\(proxy.url) is not read again") }
    demand(again.scheme == url.scheme && again.host == url.host && again.port == url.port, "\(proxy.url) differs")
    demand(again.user == nil && again.password == nil, "the shown URL has credentials")
    demand((try? ProxyURL(proxy.url + "/?a@b#c")) == again, "a query of \(proxy.url) has an effect")
    demand(HostName.key(url.host) == url.host, "the host \(url.host) is not normal")
}
