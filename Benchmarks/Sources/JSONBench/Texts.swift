// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The texts of the documents, with members in the order in which the types declare them.
///
/// Most services write members in a fixed order. Foundation's encoder would use a different order in each process, so
/// the texts are made by hand.
enum Texts {
    static func order() -> String {
        let lines = (0..<12).map { number in
            object([
                "article": quoted("article-\(number)"), "count": "\(number)", "price": "\(Double(number) * 1.25)",
                "tags": #"["new","blue"]"#,
            ])
        }
        return object([
            "id": "4711", "customer": quoted("Ada Lovelace"), "isPaid": "true", "total": "129.5",
            "currency": quoted("EUR"), "note": "null", "lines": array(lines),
        ])
    }

    static func proposal() -> String {
        var chance = Chance(2_463_534_242)
        return object([
            "number": "217", "title": quoted(chance.prose(30...60)), "isDraft": "false", "base": repository(&chance),
            "head": repository(&chance),
        ])
    }

    static func page() -> String {
        var chance = Chance(88_172_645_463_325_252)
        let items = (0..<20).map { _ in repository(&chance) }
        return object(["total": "20", "isIncomplete": "false", "items": array(items)])
    }

    /// Makes an array of posts.
    ///
    /// - Parameter count: The number of posts; 1,900 posts are about 1 MiB.
    static func posts(_ count: Int) -> String {
        var chance = Chance(1_234_567)
        return array((0..<count).map { _ in post(&chance) })
    }

    /// Makes a tree.
    ///
    /// - Parameter depth: The number of levels below the root.
    static func tree(_ depth: Int) -> String {
        let branch = depth > 0 ? tree(depth - 1) : nil
        return object(["value": "\(depth)", "left": branch, "right": branch])
    }

    static func doubles() -> String {
        var chance = Chance(99)
        return array((0..<57_000).map { _ in "\(Double.random(in: -180...180, using: &chance))" })
    }

    static func maps() -> String {
        var chance = Chance(5)
        let byName = (0..<8_000).map { "\"key\($0)\":\(point(&chance))" }
        let byNumber = (0..<12_000).map { "\"\($0 * 7)\":\(point(&chance))" }
        let counts = (0..<12_000).map { "\"n\($0)\":\($0)" }
        return object(["byName": map(byName), "byNumber": map(byNumber), "counts": map(counts)])
    }

    private static func repository(_ chance: inout Chance) -> String {
        let (login, name) = (chance.word(4...12), chance.word(5...14))
        let owner = object([
            "login": quoted(login), "id": "\(chance.number(1..<9_999_999))",
            "avatarURL": quoted("https://avatars.example.com/u/\(chance.word(6...9))"), "type": quoted("User"),
            "isAdmin": "false",
        ])
        let license = object([
            "key": quoted("mit"), "name": quoted("MIT License"),
            "url": quoted("https://api.example.com/licenses/mit"),
        ])
        return object([
            "id": "\(chance.number(1..<99_999_999))", "name": quoted(name), "fullName": quoted("\(login)/\(name)"),
            "owner": owner, "isPrivate": "false", "summary": chance.maybe { quoted($0.prose(20...90)) },
            "isFork": "\(chance.flag())", "createdAt": quoted("2024-02-29T18:30:00Z"),
            "updatedAt": quoted("2026-11-25T07:12:59Z"),
            "homepage": chance.maybe { quoted("https://\($0.word(8...20))") },
            "size": "\(chance.number(1..<99_999))", "stars": "\(chance.number(1..<9_999))",
            "score": "\(Double(chance.number(1..<1_000)) / 8)", "language": quoted("Swift"),
            "topics": array((0..<4).map { _ in quoted(chance.word(3...10)) }), "license": license,
        ])
    }

    private static func post(_ chance: inout Chance) -> String {
        let text =
            chance.prose(40...140) + (chance.flag() ? " é😀" : "")
            + (chance.number(0..<5) == 0 ? #" \"quoted\"\n"# : "")
        let user = object([
            "id": "\(chance.number(1..<1 << 32))", "name": quoted(chance.word(5...18)),
            "screenName": quoted(chance.word(5...14)), "location": chance.maybe { quoted($0.word(5...20)) },
            "followers": "\(chance.number(0..<99_999))", "friends": "\(chance.number(0..<999))",
            "isVerified": "\(chance.flag())", "url": chance.maybe { quoted("https://t.example/\($0.word(8...8))") },
        ])
        let tags = (0..<chance.number(0..<3)).map { _ in
            object(["text": quoted(chance.word(4...12)), "indices": "[3,17]"])
        }
        let links = (0..<chance.number(0..<2)).map { _ in
            object([
                "url": quoted("https://t.example/abcdef"),
                "expanded": quoted("https://www.example.com/\(chance.word(10...30))"), "indices": "[20,43]",
            ])
        }
        return object([
            "id": "\(chance.number(1 << 50..<1 << 60))", "text": quoted(text), "user": user,
            "repeats": "\(chance.number(0..<999))", "favourites": "\(chance.number(0..<999))",
            "language": quoted("en"), "entities": object(["tags": array(tags), "links": array(links)]),
            "createdAt": quoted("2026-11-24T18:30:00Z"), "source": quoted(#"<a href=\"x\">web</a>"#),
            "replyTo": chance.maybe { "\($0.number(0..<1 << 40))" }, "isSensitive": "false", "isTruncated": "false",
        ])
    }

    private static func point(_ chance: inout Chance) -> String {
        object([
            "x": "\(Double(chance.number(0..<100_000)) / 100)", "y": "\(Double(chance.number(0..<100_000)) / 100)",
            "z": "\(chance.number(0..<100))",
        ])
    }

    /// Makes an object.
    ///
    /// - Parameter members: The members; members without a value are omitted.
    private static func object(_ members: KeyValuePairs<String, String?>) -> String {
        map(members.compactMap { name, value in value.map { "\"\(name)\":\($0)" } })
    }

    private static func map(_ members: [String]) -> String { "{" + members.joined(separator: ",") + "}" }

    private static func array(_ elements: [String]) -> String { "[" + elements.joined(separator: ",") + "]" }

    /// Adds quotation marks to a text.
    ///
    /// - Parameter text: The text, already escaped.
    private static func quoted(_ text: String) -> String { "\"\(text)\"" }
}
