// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

extension JSONValue {
    /// Returns a random JSON value that is at most `depth` levels deep.
    static func random(_ chance: inout SeededChance, depth: Int) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 10 : 7), using: &chance) {
        case 0: return .null
        case 1: return .bool(.random(using: &chance))
        case 2: return .integer(Int64(bitPattern: chance.next()))
        case 3: return .unsigned(chance.next())
        case 4: return .number(Double(Int32(truncatingIfNeeded: chance.next())) / 256)
        case 5:
            let double = Double(bitPattern: chance.next())
            return .number(double.isFinite ? double : 0)
        case 6: return .string(.random(&chance))
        case 7, 8:
            return .array((0..<Int.random(in: 0...4, using: &chance)).map { _ in random(&chance, depth: depth - 1) })
        default: return randomObject(&chance, depth: depth)
        }
    }

    /// Returns a random object, whose first two characters reveal the encoding of its text (RFC 4627 §3).
    static func randomObject(_ chance: inout SeededChance, depth: Int) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for _ in 0..<Int.random(in: 0...4, using: &chance) {
            members[.random(&chance)] = random(&chance, depth: depth - 1)
        }
        return .object(members)
    }
}
