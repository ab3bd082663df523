// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Proxy {
    /// The proxy of a request and the reason for it, as shown in metrics, events and errors.
    ///
    /// ```swift
    /// print(response.metrics.proxy.map(\.description) ?? "no rule")   // http://proxy.example.com:3128 (https_proxy)
    /// ```
    public struct Choice: Sendable, Hashable, CustomStringConvertible {
        /// The rule that decided.
        public enum Reason: Sendable, Hashable, CustomStringConvertible {
            /// The policy names the proxy.
            case policy
            /// The closure of the policy returned the proxy, or nil.
            case closure
            /// An environment variable names the proxy. The value is the name of the variable.
            case variable(String)
            /// An entry of a list of exceptions covers the server. The values are the entry, and the name of the list:
            /// the name of a variable, or "except".
            case exception(String, in: String)

            /// A few words, such as "https_proxy" or "“.example.com” in no_proxy".
            public var description: String {
                switch self {
                case .policy: "policy"
                case .closure: "closure"
                case .variable(let name): name
                case .exception(let entry, let list): "“\(entry.escapingControls)” in \(list)"
                }
            }
        }

        /// A class, because metrics are copied often, and because the remark of a `PlannedURL` must be an object.
        final class Storage: Sendable {
            let proxy: Proxy?
            let reason: Reason

            init(_ proxy: Proxy?, _ reason: Reason) {
                self.proxy = proxy
                self.reason = reason
            }
        }

        let storage: Storage

        /// The proxy; nil when the request is sent to the server directly.
        public var proxy: Proxy? { storage.proxy }
        /// The rule that decided.
        public var reason: Reason { storage.reason }

        /// Creates a choice; public so that tests of observers can create one.
        public init(proxy: Proxy?, reason: Reason) { storage = Storage(proxy, reason) }

        /// Creates the choice from the remark of a URL; nil if the remark contains no choice.
        init?(_ remark: (any AnyObject & Sendable)?) {
            guard let remark, let storage = remark as? Storage else { return nil }
            self.storage = storage
        }

        /// Whether both have the same proxy and the same reason.
        public static func == (one: Choice, other: Choice) -> Bool {
            one.storage === other.storage || one.reason == other.reason && one.proxy == other.proxy
        }

        /// Hashes the proxy and the reason.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(proxy)
            hasher.combine(reason)
        }

        /// The URL of the proxy without credentials, or "direct"; then the reason in parentheses.
        public var description: String { "\(proxy?.url ?? "direct") (\(reason))" }
    }
}
