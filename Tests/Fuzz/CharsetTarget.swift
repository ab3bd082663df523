// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Text: any bytes with any label result in text or in an error, and lossy decoding never fails.
///
/// The first byte selects the label, the second the position of the cut; the rest is the body.
func examine(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    let label = labels[Int(input[0]) % labels.count]
    guard let encoding = TextEncoding(label: label) else {
        demand(false, "\(label) is not a label")
        return
    }
    let body = Data(input[2...])
    let strict = try? encoding.text(of: body)
    let lossy = try? encoding.text(of: body, lossy: true)
    demand(lossy != nil || strict == nil, "\(label): lossy reading fails")
    if let strict { demand(strict == lossy, "\(label): lossy decoding changes a valid text") }
    let cut = body.startIndex + min(body.count, Int(input[1]))
    guard let first = try? encoding.text(of: body[..<cut]), let second = try? encoding.text(of: body[cut...]),
        encoding.isStateless, !encoding.isComposing
    else { return }
    demand(
        strict?.unicodeScalars.filter { $0 != "\u{FEFF}" }
            == (first + second).unicodeScalars.filter { $0 != "\u{FEFF}" },
        "\(label): the texts of two valid parts differ from the text of the whole")
}

private let labels = TextEncoding.byLabel.keys.sorted()

extension TextEncoding {
    /// Whether the meaning of a byte does not depend on earlier characters.
    fileprivate var isStateless: Bool {
        if case .multibyte(_, []) = scheme { return false }
        return true
    }

    /// Whether two code sequences may combine into one character.
    fileprivate var isComposing: Bool { name == "Big5" || name.hasPrefix("EUC-JP") || name == "Shift_JIS" }
}
