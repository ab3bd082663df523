// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// Checks everything that can be checked without running the request, and returns its normalised target.
    /// - Throws: `NetworkError` of kind `invalidRequest` in phase `preparing`, naming the invalid part.
    func validated() throws(NetworkError) -> RequestTarget {
        try validateParts()
        return try target()
    }

    /// Checks everything but the URL.
    /// - Throws: The errors of ``validated()``.
    func validateParts() throws(NetworkError) {
        guard method == .get || method.isValid else {
            throw refused(
                .method, "The method “\(method.rawValue.escapingControls)” is not a token.",
                hint: "A method consists of letters, digits and !#$%&'*+-.^_`|~ (RFC 9110 §5.6.2).")
        }
        try checkMethodAndBody()
        for field in fields { try check(field) }
        if let name = options.ownTimeouts?.firstInvalid {
            throw refused(
                .option, "The timeout “\(name)” is not above zero.",
                hint: name == "connect" ? "Set it to a time above zero." : "Use nil for no limit.")
        }
        if let way = options.bandwidth?.firstInvalid {
            throw refused(.option, "The bandwidth limit for \(way) is not above zero.", hint: "Use nil for no limit.")
        }
        if let rule = options.retry?.firstBrokenRule {
            throw refused(.option, "The retry policy is not valid: \(rule).", hint: "See RetryPolicy.")
        }
        if let limit = options.responseLimit, limit < 0 {
            throw refused(.option, "The response limit is negative.", hint: "Use nil for the session's limit.")
        }
        if let threshold = options.compression?.threshold, threshold < 0 {
            throw refused(
                .option, "The threshold of compression is negative.", hint: "Use zero to compress every body.")
        }
        if options.setsRoute { try validateRoute() }
        if let policy = options.redirects, policy.maximum < 0 {
            throw refused(
                .option, "The maximum of redirects is negative.", hint: "Use RedirectPolicy.never for no redirects.")
        }
    }

    private func validateRoute() throws(NetworkError) {
        if let path = options.unixSocket {
            // The kernel's limit is 108 bytes with the final NUL of a path, or the first of an abstract name (unix(7)).
            let name = path.hasPrefix("@") ? path.dropFirst() : path[...]
            guard !name.isEmpty, name.utf8.count <= 107, !path.utf8.contains(0) else {
                throw refused(
                    .option, "The Unix socket “\(path.escapingControls)” has no valid path.",
                    hint: "Give a path or “@” and an abstract name, of 1 to 107 bytes.")
            }
        }
        if let trafficClass = options.trafficClass, !trafficClass.isValid {
            throw refused(.option, "\(trafficClass) is no traffic class.", hint: "Use a code point from 0 to 63.")
        }
    }

    /// Checks and normalises the URL.
    /// - Throws: The errors of ``validated()``.
    package func target() throws(NetworkError) -> RequestTarget {
        do throws(InvalidURL) {
            return try RequestTarget(url)
        } catch {
            throw refused(
                error.reason.flaw, "\(error).", hint: "Requests take absolute http and https URLs.", cause: error)
        }
    }

    private func checkMethodAndBody() throws(NetworkError) {
        if method == .connect {
            throw refused(
                .method, "The method “CONNECT” opens a tunnel and cannot be sent as a request.",
                hint: "Use another method; Curlew opens no tunnels for requests.")
        }
        if body.isNone { return }
        if let flaw = body.flaw { throw refused(.body, flaw.message, hint: flaw.hint) }
        if let length = body.length, length < 0 {
            throw refused(
                .body, "The length of the body is negative.", hint: "Leave the length out when it is not known.")
        }
        if method == .head || method == .trace {
            throw refused(
                .body, "A \(method.rawValue) request has no body (RFC 9110 §9.3).",
                hint: "Leave the body out, or use POST.")
        }
    }

    private func check(_ field: HeaderFields.Field) throws(NetworkError) {
        let name = field.name.rawValue.escapingControls
        guard field.name.isValid else {
            throw refused(
                .field, "The field name “\(name)” is not a token.",
                hint: "A field name has no spaces, colons or control characters (RFC 9110 §5.1).")
        }
        guard HeaderFields.isValidValue(field.value) else {
            let shown = field.redacted.value.escapingControls
            throw refused(
                .field, "The value “\(shown)” of the field “\(name)” contains a control character.",
                hint: "Line breaks in values would let data become fields (RFC 9110 §5.5); remove or encode them.")
        }
        if let owned = Self.ownedFields[field.name] {
            throw refused(.field, "The field “\(name)” is written by Curlew and cannot be set.", hint: owned)
        }
    }

    private func refused(
        _ flaw: NetworkError.RequestFlaw, _ message: String, hint: String, cause: (any Error)? = nil
    ) -> NetworkError {
        NetworkError(invalid: flaw, message, hint: hint, cause: cause, request: self)
    }

    /// Fields that frame or route the message, each with the hint what to use instead.
    static var ownedFields: OwnedFields { OwnedFields() }

    /// A switch instead of a dictionary: creating the first dictionary of this type would be the slowest step of a
    /// session before its first request.
    struct OwnedFields {
        subscript(name: HeaderName) -> String? {
            switch name {
            case .contentLength: "The length is that of the body; give the body, or a stream with its length."
            case .transferEncoding: "A streamed body without a length is sent in chunks automatically."
            case .proxyAuthorization: "Give the proxy's credentials to the Proxy; the field could reach the server."
            case .host: "The host is that of the URL: put the virtual host there, and the address in `tcp.addresses`."
            default: nil
            }
        }
    }
}
