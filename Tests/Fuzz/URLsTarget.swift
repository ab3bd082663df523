// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Request URLs: an accepted URL has the same meaning for Curlew and for libcurl.
func examine(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    examineRedaction(text)
    let target: RequestTarget
    do throws(InvalidURL) {
        target = try RequestTarget(text)
    } catch {
        demand(!hasControls(error.description), "an error has controls")
        return
    }
    examineForm(target)
    examineAgain(target)
    examineCurl(target)
    if let plain = try? RequestTarget(text, names: nil) {
        demand(plain == target, "the library for names changes an ASCII host")
    }
    let shownAuthority = target.description.dropFirst(target.scheme.rawValue.count + 3).prefix { $0 != "/" }
    demand(!shownAuthority.contains("@"), "a description shows user-info")
}

private func hasControls(_ text: String) -> Bool {
    text.unicodeScalars.contains { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) }
}

private func examineRedaction(_ text: String) {
    let shown = redactedURL(text)
    demand(!hasControls(shown), "a redacted URL has controls")
}

/// The text of a target is ASCII without white space and consists of its parts.
private func examineForm(_ target: RequestTarget) {
    demand(target.text.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "the text has invalid characters")
    demand(!target.host.isEmpty && target.port > 0, "no host or no port")
    let allowed = target.isIPv6 ? "0123456789abcdef:" : "abcdefghijklmnopqrstuvwxyz0123456789-._~"
    demand(target.host.allSatisfy(allowed.contains), "the host is \(target.host)")
    demand(target.path.hasPrefix("/") && !target.path.contains { "?#".contains($0) }, "the path is \(target.path)")
    demand(target.query?.contains("#") != true, "a fragment is left")
    let host = target.isIPv6 ? "[\(target.host)]" : target.host
    let port = target.port == target.scheme.defaultPort ? "" : ":\(target.port)"
    let whole =
        "\(target.scheme.rawValue)://" + (target.userInfo.map { $0 + "@" } ?? "") + host + port + target.path
        + (target.query.map { "?" + $0 } ?? "")
    demand(whole == target.text, "its parts make \(whole)")
}

/// Normalising a normalised URL does not change it.
private func examineAgain(_ target: RequestTarget) {
    let again = try? RequestTarget(target.text)
    demand(again == target, "parsed again it is \(again?.text ?? "refused")")
    demand(again?.host == target.host && again?.path == target.path, "its parts have changed")
}

/// libcurl connects to the host and port that Curlew has checked, and sends the same query.
private func examineCurl(_ target: RequestTarget) {
    guard let theirs = CurlURL(target.text) else { return }
    let host = target.isIPv6 ? "[\(target.host)]" : target.host
    demand(theirs.host == host, "libcurl's host is \(theirs.host ?? "missing")")
    demand(theirs.port == "\(target.port)", "libcurl's port is \(theirs.port ?? "missing")")
    demand(theirs.scheme == target.scheme.rawValue, "libcurl's scheme is \(theirs.scheme ?? "missing")")
    demand((theirs.query ?? "") == (target.query ?? ""), "libcurl's query is \(theirs.query ?? "missing")")
}
