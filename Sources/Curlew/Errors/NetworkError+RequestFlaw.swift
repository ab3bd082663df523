// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// The invalid part of a request or its environment in an error of kind ``Kind/invalidRequest``: an open set.
    ///
    /// ```swift
    /// if error.requestFlaw == .scheme { show("Write the address with https:// in front.") }
    /// ```
    public struct RequestFlaw: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The stable name, such as "scheme".
        public let rawValue: String

        /// Creates a flaw with any name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The stable name.
        public var description: String { rawValue }

        /// The URL as a whole: it is empty, or it has a control character or a part that is not allowed.
        public static let url = Self(rawValue: "url")
        /// The URL does not begin with http:// or https://, or begins with http:// where TLS is required.
        public static let scheme = Self(rawValue: "scheme")
        /// The URL has no host or an invalid host.
        public static let host = Self(rawValue: "host")
        /// The URL's port is not a number from 1 to 65535.
        public static let port = Self(rawValue: "port")
        /// The path of a client's call: it leaves the base URL, or a value in it names another resource.
        public static let path = Self(rawValue: "path")
        /// The method is not a token, or not allowed for this purpose.
        public static let method = Self(rawValue: "method")
        /// A header field: its name or value is invalid, or the field is not allowed.
        public static let field = Self(rawValue: "field")
        /// The request's body: it cannot be read, signed or sent with this method.
        public static let body = Self(rawValue: "body")
        /// An option of the request, such as a timeout or its retry policy.
        public static let option = Self(rawValue: "option")
        /// A setting of the session, or of an interceptor.
        public static let configuration = Self(rawValue: "configuration")
        /// A user name, password, key or the file that holds them.
        public static let credentials = Self(rawValue: "credentials")
        /// The destination of a file, or its expected checksum.
        public static let destination = Self(rawValue: "destination")
        /// The call itself, such as a second read of a body or the use of a closed store.
        public static let usage = Self(rawValue: "usage")
        /// Another part; also the flaw of an error that was created without a flaw.
        public static let other = Self(rawValue: "other")
    }

    /// Creates an error of kind `.invalidRequest`; the module uses only this initializer, so that each error has its
    /// flaw.
    ///
    /// - Parameters:
    ///   - flaw: The part that is invalid.
    ///   - message: One sentence without secrets.
    ///   - hint: A suggestion for the developer.
    ///   - cause: The underlying error.
    ///   - request: The request that is invalid.
    ///   - response: The response that made the request invalid.
    ///   - phase: The phase in which the flaw was found; `preparing` by default.
    package init(
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
    package var flaw: NetworkError.RequestFlaw {
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
