// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The namespace of the types that an ``Interceptor`` uses.
public enum Interception {}

extension Interceptor {
    /// The transfer that an interceptor belongs to.
    public typealias Context = Interception.Context
    /// The rest of the chain, which an interceptor calls.
    public typealias Next = Interception.Next
    /// The part of a transfer that an interceptor surrounds.
    public typealias Scope = Interception.Scope
}
