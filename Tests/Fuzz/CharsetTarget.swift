// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Text: any bytes by any label end as text or as an error, and what is lossy never fails.
///
/// The first byte chooses the label, the second where the body is cut, the rest is the body.
func examine(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    let label = labels[Int(input[0]) % labels.count]
    guard let encoding = TextEncoding(label: label) else {
        demand(false, "\(label) is no label")
        return
    }
    let body = Data(input[2...])
    let strict = try? encoding.text(of: body)
    let lossy = try? encoding.text(of: body, lossy: true)
    demand(lossy != nil || strict == nil, "\(label): lossy reading fails")
    if let strict { demand(strict == lossy, "\(label): a sound text is read differently when it need not be") }
    let cut = body.startIndex + min(body.count, Int(input[1]))
    guard let first = try? encoding.text(of: body[..<cut]), let second = try? encoding.text(of: body[cut...]),
        encoding.isStateless, !encoding.isComposing
    else { return }
    demand(
        strict?.unicodeScalars.filter { $0 != "\u{FEFF}" }
            == (first + second).unicodeScalars.filter { $0 != "\u{FEFF}" },
        "\(label): two sound parts are another text together")
}

private let labels = TextEncoding.byLabel.keys.sorted()

extension TextEncoding {
    /// Whether no byte changes what later ones mean.
    fileprivate var isStateless: Bool {
        if case .multibyte(_, []) = scheme { return false }
        return true
    }

    /// Whether two characters may become one.
    fileprivate var isComposing: Bool { name == "Big5" || name.hasPrefix("EUC-JP") || name == "Shift_JIS" }
}
