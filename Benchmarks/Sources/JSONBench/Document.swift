// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Measuring

enum Coder: String, CaseIterable {
    case foundation
    case ours
}

enum Direction: String, CaseIterable {
    case decode
    case encode
}

/// A document to decode and to encode, and the target speed of our coders as a multiple of Foundation's speed.
struct Document {
    let name: String
    let title: String
    let targets: [Direction: Double]
    /// Creates the text and the value.
    let open: () throws -> any Opened

    private init<Value: Codable>(
        _ name: String, _ title: String, _ type: Value.Type, hasDates: Bool = false,
        _ targets: [Direction: Double], _ text: @escaping () -> String
    ) {
        self.name = name
        self.title = title
        self.targets = targets
        open = { try OpenedDocument<Value>(text(), hasDates) }
    }

    static func all() -> [Document] {
        [
            Document("order", "order", Order.self, [.decode: 5.8], Texts.order),
            Document("object", "object", Proposal.self, [.decode: 5.8, .encode: 5], Texts.proposal),
            Document("page", "page of objects", Page.self, [.decode: 5.8, .encode: 6], Texts.page),
            Document(
                "dates", "the same with ISO 8601 dates", DatedPage.self, hasDates: true, [.decode: 6.5], Texts.page),
            Document(
                "array", "array of objects", [Post].self, [.decode: 5.5, .encode: 7.5], { Texts.posts(1_900) }),
            Document("tree", "recursive tree", Tree.self, [.decode: 4], { Texts.tree(11) }),
            Document("doubles", "57,000 doubles", [Double].self, [.decode: 8, .encode: 5], Texts.doubles),
            Document("maps", "maps by string and number", Maps.self, [.decode: 7.5, .encode: 8], Texts.maps),
        ]
    }
}

/// A document with its text and value.
protocol Opened {
    var bytes: Int { get }

    /// Decodes or encodes the document once.
    func use(_ coder: Coder, _ direction: Direction) throws

    /// Returns whether both decoders read the same value, and Foundation's decoder reads it from our encoder's output.
    func isSame() throws -> Bool
}

private struct OpenedDocument<Value: Codable>: Opened {
    private let text: Data
    private let value: Value
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()
    private let json: JSON

    var bytes: Int { text.count }

    init(_ text: String, _ hasDates: Bool) throws {
        if hasDates {
            decoder.dateDecodingStrategy = .iso8601
            encoder.dateEncodingStrategy = .iso8601
        }
        json = JSON { encoding, decoding in
            guard hasDates else { return }
            decoding.dateDecodingStrategy = .iso8601
            encoding.dateEncodingStrategy = .iso8601
        }
        self.text = Data(text.utf8)
        value = try decoder.decode(Value.self, from: self.text)
    }

    func use(_ coder: Coder, _ direction: Direction) throws {
        switch (coder, direction) {
        case (.foundation, .decode): _ = try decoder.decode(Value.self, from: text)
        case (.foundation, .encode): _ = try encoder.encode(value)
        case (.ours, .decode): _ = try json.decode(Value.self, from: text)
        case (.ours, .encode): _ = try json.encode(value)
        }
    }

    func isSame() throws -> Bool {
        let sorting = JSONEncoder()
        sorting.outputFormatting = .sortedKeys
        let wanted = try sorting.encode(value)
        let written = try decoder.decode(Value.self, from: json.encode(value))
        return try sorting.encode(json.decode(Value.self, from: text)) == wanted && sorting.encode(written) == wanted
    }
}
