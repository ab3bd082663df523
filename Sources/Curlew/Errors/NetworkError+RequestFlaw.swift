// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// The part of a request, or of what runs it, that an error of kind ``Kind/invalidRequest`` is about: an open set.
    ///
    /// ```swift
    /// if error.requestFlaw == .scheme { show("Write the address with https:// in front.") }
    /// ```
    public struct RequestFlaw: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The stable name, such as "scheme".
        public let rawValue: String

        /// Takes any name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The stable name.
        public var description: String { rawValue }

        /// The URL as a whole: it is empty, has a control character, or a part that must not be there.
        public static let url = Self(rawValue: "url")
        /// The URL does not begin with http:// or https://, or begins with http:// where TLS is required.
        public static let scheme = Self(rawValue: "scheme")
        /// The URL names no host, or an invalid one.
        public static let host = Self(rawValue: "host")
        /// The URL's port is not a number from 1 to 65535.
        public static let port = Self(rawValue: "port")
        /// The path of a client's call: it leaves the base URL, or a value in it names another resource.
        public static let path = Self(rawValue: "path")
        /// The method is not a token, or not one for this purpose.
        public static let method = Self(rawValue: "method")
        /// A header field: its name, its value, or that it is given at all.
        public static let field = Self(rawValue: "field")
        /// The request's body: it cannot be read, signed or sent with this method.
        public static let body = Self(rawValue: "body")
        /// An option of the request, such as a timeout or its retry policy.
        public static let option = Self(rawValue: "option")
        /// A setting of the session, or of an interceptor.
        public static let configuration = Self(rawValue: "configuration")
        /// A user name, password, key or the file that holds them.
        public static let credentials = Self(rawValue: "credentials")
        /// Where a file is written to, or the checksum it is to have.
        public static let destination = Self(rawValue: "destination")
        /// The call itself: a body that is read twice, a store that is closed.
        public static let usage = Self(rawValue: "usage")
        /// Anything else; also of an error that was made without a flaw.
        public static let other = Self(rawValue: "other")
    }

    /// An error of kind `.invalidRequest`; within the module there is no other way to make one, so each has its flaw.
    ///
    /// - Parameters:
    ///   - flaw: The part that is invalid.
    ///   - message: One sentence without secrets.
    ///   - hint: What to try.
    ///   - cause: The error behind this one.
    ///   - request: The request that is invalid.
    ///   - response: The response that made it so.
    ///   - phase: When it was noticed; `preparing` unless given.
    init(
        invalid flaw: RequestFlaw, _ message: String, hint: String? = nil, cause: (any Error)? = nil,
        request: Request? = nil, response: ResponseHead? = nil, phase: Phase = .preparing
    ) {
        let kind = Kind.invalidRequest
        self.init(
            kind, phase: phase, message, hint: hint, cause: cause, request: request, response: response,
            requestFlaw: flaw)
    }
}

extension InvalidURL.Reason {
    /// The part of the URL that is invalid.
    var flaw: NetworkError.RequestFlaw {
        switch self {
        case .empty, .controlCharacter, .forbiddenInUserInfo: .url
        case .noScheme, .unsupportedScheme: .scheme
        case .invalidPort: .port
        case .noHost, .percentEscapeInHost, .forbiddenInHost, .emptyLabel, .labelTooLong, .nameTooLong, .invalidIPv4,
            .invalidIPv6, .namesLibraryMissing, .nameRefused:
            .host
        }
    }
}
