// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

struct Repository: Codable {
    struct Owner: Codable {
        var login: String
        var id: Int
        var avatarURL: String
        var type: String
        var isAdmin: Bool
    }

    struct License: Codable {
        var key: String
        var name: String
        var url: String?
    }

    var id: Int
    var name: String
    var fullName: String
    var owner: Owner
    var isPrivate: Bool
    var summary: String?
    var isFork: Bool
    var createdAt: String
    var updatedAt: String
    var homepage: String?
    var size: Int
    var stars: Int
    var score: Double
    var language: String?
    var topics: [String]
    var license: License?
}

/// A type with the members of `Repository`, two of them as dates.
///
/// A generic type would be slower with both coders, because its code is not specialized.
struct DatedRepository: Codable {
    var id: Int
    var name: String
    var fullName: String
    var owner: Repository.Owner
    var isPrivate: Bool
    var summary: String?
    var isFork: Bool
    var createdAt: Date
    var updatedAt: Date
    var homepage: String?
    var size: Int
    var stars: Int
    var score: Double
    var language: String?
    var topics: [String]
    var license: Repository.License?
}

struct Proposal: Codable {
    var number: Int
    var title: String
    var isDraft: Bool
    var base: Repository
    var head: Repository
}

struct Page: Codable {
    var total: Int
    var isIncomplete: Bool
    var items: [Repository]
}

struct DatedPage: Codable {
    var total: Int
    var isIncomplete: Bool
    var items: [DatedRepository]
}

struct Post: Codable {
    struct User: Codable {
        var id: Int
        var name: String
        var screenName: String
        var location: String?
        var followers: Int
        var friends: Int
        var isVerified: Bool
        var url: String?
    }

    struct Tag: Codable {
        var text: String
        var indices: [Int]
    }

    struct Link: Codable {
        var url: String
        var expanded: String
        var indices: [Int]
    }

    struct Entities: Codable {
        var tags: [Tag]
        var links: [Link]
    }

    var id: Int
    var text: String
    var user: User
    var repeats: Int
    var favourites: Int
    var language: String
    var entities: Entities
    var createdAt: String
    var source: String?
    var replyTo: Int?
    var isSensitive: Bool
    var isTruncated: Bool
}

final class Tree: Codable {
    var value: Int
    var left: Tree?
    var right: Tree?
}

struct Maps: Codable {
    struct Point: Codable {
        var x: Double
        var y: Double
        var z: Int
    }

    var byName: [String: Point]
    var byNumber: [Int: Point]
    var counts: [String: Int]
}
