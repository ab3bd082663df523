// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Descriptions of URLs never show a secret in a part for secrets, regardless of the text around it.
///
/// The first byte selects the part of the URL; the rest, cut at its first NUL, precedes and follows the secret.
func examine(_ input: [UInt8]) {
    guard let choice = input.first else { return }
    let rest = input.dropFirst()
    let cut = rest.firstIndex(of: 0) ?? rest.endIndex
    let before = String(decoding: rest[..<cut], as: UTF8.self)
    let after = String(decoding: rest[cut...].dropFirst(), as: UTF8.self)
    if (before + after).contains(secret) { return }
    switch choice % 6 {
    case 0: examineHidden(before + "?name=" + secret + after)
    case 1: examineHidden(before + "#" + secret + after)
    case 2: examineHidden(before + "/segment;name=" + secret + after)
    case 3: examineUserInfo(before, after)
    case 4: examineField(before, after)
    default: examineTarget(before, after)
    }
}

private let secret = "Wq7ZpX2kV9"

private func examineHidden(_ text: String) {
    let shown = redactedURL(text)
    demand(!shown.contains(secret), "\(text) is shown as \(shown)")
    demand(!shown.unicodeScalars.contains { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) }, "controls are shown")
    // A byte becomes at most an escape of eight characters, or belongs to an item with "<redacted>".
    let (length, shownLength) = (text.utf8.count, shown.utf8.count)
    demand(shownLength <= 12 * (length + 1), "a text of \(length) bytes becomes \(shownLength)")
}

/// Checks a user and a password after a text that may be the start of a URL.
private func examineUserInfo(_ before: String, _ after: String) {
    let separators = before.filter { ":/\\".contains($0) }.prefix(4)
    for word in ["http", "HTTPS"] {
        let gap = separators.isEmpty ? "://" : String(separators)
        examineHidden("\(word)\(gap)user:\(secret)@host/\(after)")
    }
    examineHidden("scheme://user:\(secret)@host/\(after)")
    examineHidden("user:\(secret)@host/\(after)")
}

/// Checks values of fields with credentials or URLs.
private func examineField(_ before: String, _ after: String) {
    let line = "?name=\(secret)\(after)"
    let fields: HeaderFields = ["Authorization": "Bearer \(secret)", "Location": "/path\(line)", "Referer": "x\(line)"]
    demand(!fields.description.contains(secret), "fields are shown as \(fields)")
    demand(!redactedQuery("\(before)&a=\(secret)").contains(secret), "a query shows its value")
}

/// Checks a password in a valid URL.
private func examineTarget(_ before: String, _ after: String) {
    guard let target = try? RequestTarget("https://\(before):\(secret)@\(after)") else { return }
    guard target.userInfo?.contains(secret) == true, !target.host.contains(secret.lowercased()) else { return }
    demand(!target.description.contains(secret), "a target is shown as \(target)")
    demand(!redactedURL(target.text).contains(secret), "the text of a target is shown")
}
