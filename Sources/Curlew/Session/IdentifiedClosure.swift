// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A closure that can be compared: each instance is equal only to itself.
final class IdentifiedClosure<Body: Sendable>: Sendable, Hashable {
    let body: Body

    init(_ body: Body) { self.body = body }

    static func == (one: IdentifiedClosure, other: IdentifiedClosure) -> Bool { one === other }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
