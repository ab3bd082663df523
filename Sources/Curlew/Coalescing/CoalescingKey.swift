// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The parts of a request that equal requests have in common.
package struct CoalescingKey: Hashable, @unchecked Sendable {
    // Safe because the key does not change, and the values in each AnyHashable are evaluators, interceptors and parts
    // of them, which are Sendable.

    let method: Method
    let url: [UInt8]
    let fields: [[UInt8]]
    let withheld: [HeaderName]
    let options: Request.Options
    let trust: AnyHashable?
    let interceptors: [AnyHashable]

    /// Nil if an interceptor of the request cannot be compared.
    ///
    /// - Parameter scope: The scope of the interceptors that count; nil for all of them.
    package init?(_ request: Request, interceptorsOf scope: Interception.Scope?) {
        method = request.method
        // Bytes are compared: for Swift, strings of different bytes can be equal.
        url = Array(request.url.utf8)
        fields = request.fields.flatMap { [Array($0.name.canonical.utf8), Array($0.value.utf8)] }
        withheld = request.withheld
        var options = request.options
        options.label = nil
        options.priority = .normal
        self.options = options
        trust = request.trust.map { AnyHashable($0) }
        var identities: [AnyHashable] = []
        for interceptor in request.interceptors where scope.map({ $0 == interceptor.scope }) ?? true {
            guard let identity = interceptor.identity else { return nil }
            identities.append(identity)
        }
        interceptors = identities
    }
}

extension Interceptor {
    /// A value that equal interceptors have in common; nil if interceptors of the type cannot be compared.
    fileprivate var identity: AnyHashable? {
        if let interceptor = self as? any ComparableInterceptor { return interceptor.comparison }
        if let value = self as? any Hashable { return AnyHashable(value) }
        return type(of: self) is AnyClass ? AnyHashable(ObjectIdentity(self as AnyObject)) : nil
    }
}

/// An object that is compared by its identity, and is kept alive so that no other object gets its address.
struct ObjectIdentity: Hashable {
    private let object: AnyObject

    init(_ object: AnyObject) { self.object = object }

    static func == (one: ObjectIdentity, other: ObjectIdentity) -> Bool { one.object === other.object }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(object)) }
}

/// An interceptor that is not `Hashable` for its users, but can be compared.
protocol ComparableInterceptor: Interceptor {
    /// A value that equal interceptors have in common.
    var comparison: AnyHashable { get }
}
