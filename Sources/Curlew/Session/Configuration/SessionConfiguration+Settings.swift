// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Settings of a session from JSON files and environment variables.
extension Session.Configuration {
    /// Creates a configuration from JSON, such as the contents of a settings file.
    ///
    /// The keys are the names of the members. Each group is an object. Times are in seconds. A missing member takes its
    /// default. JSON cannot set secrets or closures: set `tls.keyLogFile`, the credentials of proxies and closures in
    /// code.
    ///
    /// ```swift
    /// let settings = #"{"timeouts": {"connect": 3}, "proxy": "none", "limits": {"connections": 20}}"#
    /// let session = Session(try Session.Configuration(json: settings.utf8))
    /// ```
    /// - Throws: `NetworkError` of kind `invalidRequest` with the flaw `configuration` for text that is not JSON, an
    ///   unknown key, a value of the wrong type, and a value that ``validate()`` refuses. The message names the key,
    ///   such as `limits.connections`.
    public init(json: some Collection<UInt8>) throws(NetworkError) {
        let values: JSONValue
        do { values = try JSON().decode(from: json) } catch { throw Self.refused("", "they are not JSON", error) }
        guard let object = values.asObject else { throw Self.refused("", "they are not a JSON object") }
        try Self.refuseUnknownKeys(in: object)
        do { self = try JSON().decode(from: json) } catch { throw Self.refused("", Self.reason(error), error) }
        try validate()
    }

    /// Sets members from environment variables with the prefix `CURLEW_`.
    ///
    /// The rest of the name is the path of the key in JSON, in upper case, with a "_" between words:
    /// `CURLEW_TIMEOUTS_CONNECT=3` sets `timeouts.connect`, `CURLEW_LIMITS_CONNECTIONS_PER_HOST=8` sets
    /// `limits.connectionsPerHost`, and `CURLEW_PROXY=none` sets `proxy`. A value is JSON, or a text without quotes. An
    /// empty value leaves the member unchanged.
    ///
    /// ```swift
    /// var configuration = Session.Configuration.default
    /// try configuration.apply(environment: ProcessInfo.processInfo.environment)
    /// ```
    /// - Parameter environment: The variables. A variable without the prefix has no effect, and neither has a variable
    ///   whose name begins with neither a member nor a group.
    /// - Throws: `NetworkError` of kind `invalidRequest` with the flaw `configuration`. The message names the variable
    ///   or the key. The configuration stays unchanged.
    public mutating func apply(environment: [String: String]) throws(NetworkError) {
        var changed = self
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) {
            guard name.hasPrefix(Self.prefix), !value.isEmpty else { continue }
            try changed.apply(name, value)
        }
        do throws(NetworkError) { try changed.validate() } catch {
            throw Self.refused("", "\(error.message)")
        }
        self = changed
    }

    private static let prefix = "CURLEW_"

    /// The groups with the keys of their members.
    private static let groups: [(name: CodingKeys, keys: [any CodingKey])] = [
        (.timeouts, Timeouts.Name.allCases), (.limits, Limits.Keys.allCases), (.tls, TLS.Keys.allCases),
        (.tcp, TCP.Keys.allCases), (.http, HTTP.Keys.allCases), (.buffers, Buffers.Keys.allCases),
        (.redirects, RedirectPolicy.CodingKeys.allCases), (.retry, RetryPolicy.CodingKeys.allCases),
        (.proxy, Proxy.Policy.CodingKeys.allCases),
    ]

    private static func refuseSecrets(in fields: JSONValue?) throws(NetworkError) {
        guard let fields, let read = try? JSON().decode(HeaderFields.self, from: JSON().encode(fields)) else { return }
        for field in read where field.name.isSensitive {
            throw refused("fields", "the value of “\(field.name.rawValue)” is a secret, so set it in code")
        }
    }

    private static func refuseUnknownKeys(in object: [String: JSONValue]) throws(NetworkError) {
        for key in object.keys.sorted() {
            guard CodingKeys.allCases.contains(where: { $0.stringValue == key }) else {
                throw refused(key, "there is no such key")
            }
            if key == CodingKeys.fields.stringValue { try refuseSecrets(in: object[key]) }
            guard let group = groups.first(where: { $0.name.stringValue == key }), let members = object[key]?.asObject
            else { continue }
            for member in members.keys.sorted() where !group.keys.contains(where: { $0.stringValue == member }) {
                throw refused("\(key).\(member)", "there is no such key")
            }
        }
    }

    private mutating func apply(_ name: String, _ value: String) throws(NetworkError) {
        let words = String(name.dropFirst(Self.prefix.count))
        var path: [String]?
        if let key = CodingKeys.allCases.first(where: { Self.variable($0) == words }) {
            path = [key.stringValue]
        } else if let group = Self.groups.first(where: { words.hasPrefix(Self.variable($0.name) + "_") }) {
            let member = words.dropFirst(Self.variable(group.name).count + 1)
            guard let key = group.keys.first(where: { Self.variable($0) == member }) else {
                throw Self.refused(name, "there is no such member of \(group.name.stringValue)")
            }
            path = [group.name.stringValue, key.stringValue]
        }
        guard let path else { return }
        let text = JSONValue.string(value)
        let json = try? JSON().decode(JSONValue.self, from: value.utf8)
        do {
            self = try setting(path, to: json ?? text)
        } catch {
            // A text can also be valid JSON, such as the TLS version 1.2.
            guard json != nil, let changed = try? setting(path, to: text) else {
                throw Self.refused(name, Self.reason(error), error)
            }
            self = changed
        }
    }

    /// Returns the configuration with one member from JSON.
    private func setting(_ path: [String], to value: JSONValue) throws -> Session.Configuration {
        var result = self
        var value = value
        let key = path[0]
        if value.isNull {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "null has no meaning here"))
        }
        if path.count == 1 {
            try Self.refuseUnknownKeys(in: [key: value])
            if let members = value.asObject, let known = try group(key).asObject, !known.isEmpty {
                value = .object(known.merging(members) { _, new in new })
            }
        } else {
            var members = try group(key).asObject ?? [:]
            members[path[1]] = value
            value = .object(members)
        }
        let changed = try JSON().decode(
            Session.Configuration.self, from: JSON().encode(JSONValue.object([key: value])))
        // Copy only this member or group: other members may have values that JSON cannot contain.
        switch CodingKeys(stringValue: key) {
        case .timeouts: result.timeouts = changed.timeouts
        case .limits: result.limits = changed.limits
        case .tls:
            result.tls = changed.tls
            result.tls.keyLogFile = tls.keyLogFile
        case .tcp: result.tcp = changed.tcp
        case .fields: result.fields.merge(changed.fields)
        case .http: result.http = changed.http
        case .buffers: result.buffers = changed.buffers
        case .redirects: result.redirects = changed.redirects
        case .retry: result.retry = changed.retry
        case .isEphemeral: result.isEphemeral = changed.isEphemeral
        case .cachePolicy: result.cachePolicy = changed.cachePolicy
        case .coalescesRequests: result.coalescesRequests = changed.coalescesRequests
        case .proxy: result.proxy = changed.proxy
        case nil: break
        }
        return result
    }

    private func group(_ key: String) throws -> JSONValue {
        func json(_ value: some Encodable) throws -> JSONValue { try JSON().decode(from: JSON().encode(value)) }
        return switch CodingKeys(stringValue: key) {
        case .timeouts: try json(timeouts)
        case .limits: try json(limits)
        case .tls: try json(tls)
        case .tcp: try json(tcp)
        case .http: try json(http)
        case .buffers: try json(buffers)
        case .redirects: try json(redirects)
        case .retry: try json(retry)
        default: .object([:])
        }
    }

    /// Returns a key as a part of a variable's name: `connectionsPerHost` becomes `CONNECTIONS_PER_HOST`.
    private static func variable(_ key: some CodingKey) -> String {
        key.stringValue.reduce(into: "") { name, letter in
            if letter.isUppercase { name.append("_") }
            name.append(letter.uppercased())
        }
    }

    /// Returns the path of the key in a decoder's error, and the reason for the error.
    private static func reason(_ error: any Error) -> String {
        if let error = error as? NetworkError { return error.message }
        let found: (context: DecodingError.Context, more: String)? =
            switch error as? DecodingError {
            case .typeMismatch(_, let context), .dataCorrupted(let context): (context, "")
            case .valueNotFound(_, let context): (context, "")
            case .keyNotFound(let key, let context): (context, ".\(key.stringValue)")
            default: nil
            }
        guard let found else { return "\(error)" }
        let path = found.context.codingPath.map(\.stringValue).joined(separator: ".") + found.more
        return path.isEmpty ? found.context.debugDescription : "\(path): \(found.context.debugDescription)"
    }

    private static func refused(_ name: String, _ reason: String, _ cause: (any Error)? = nil) -> NetworkError {
        let place = name.isEmpty ? "" : " in \(name.escapingControls)"
        let text = reason.escapingControls
        return NetworkError(
            invalid: .configuration, "The settings are not valid\(place): \(text)\(text.hasSuffix(".") ? "" : ".")",
            hint: "The keys are the members of Session.Configuration. Each group is an object. Times are in seconds.",
            cause: cause)
    }
}
