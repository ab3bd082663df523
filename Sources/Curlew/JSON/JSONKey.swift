// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A key of a coding path that has no `CodingKey` type of the caller: an index, a name in the text, or `super`.
struct JSONKey: CodingKey, Hashable {
    let stringValue: String
    let intValue: Int?

    static let `super` = JSONKey(stringValue: "super")

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }

    /// Creates the key of an element of an array.
    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }
}
