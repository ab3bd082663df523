// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Session.Configuration {
    /// Checks that all members are valid; a session performs this check when it is created.
    /// - Throws: `NetworkError` of kind `invalidRequest` in phase `preparing`, naming the invalid member.
    public func validate() throws(NetworkError) {
        if let name = timeouts.firstInvalid { throw refused("timeouts.\(name) must be above zero") }
        try validateLimits()
        if let rule = tcp.firstBrokenRule { throw refused(rule) }
        if let rule = tls.firstBrokenRule { throw refused(rule) }
        for field in fields {
            let name = field.name.rawValue.escapingControls
            guard field.name.isValid else { throw refused("“\(name)” in fields must be a token") }
            guard HeaderFields.isValidValue(field.value) else {
                throw refused("the value of “\(name)” in fields must have no control characters")
            }
            if Request.ownedFields[field.name] != nil {
                throw refused("“\(name)” must not be among the fields, since Curlew writes it")
            }
        }
        if let proxy = self.proxy.namedProxy, let rule = proxy.brokenRule {
            throw refused("the proxy \(proxy.url) cannot be used: \(rule)")
        }
        if isEphemeral, tls.keyLogFile != nil { throw refused("an ephemeral session must not set tls.keyLogFile") }
        if buffers.lowWater > buffers.highWater {
            throw refused("buffers.lowWater must not be above buffers.highWater")
        }
    }

    /// Checks that an ephemeral session has no files.
    func checkFiles(cookies: String?, hsts: String?, cache: HTTPCache?) throws(NetworkError) {
        if isEphemeral, cache?.store.isPersistent == true {
            throw refused("an ephemeral session must not use a cache with a persistent store")
        }
        guard isEphemeral, let path = cookies ?? hsts else { return }
        throw refused("an ephemeral session must not use a file for cookies or HSTS (\(path.escapingControls))")
    }

    private func validateLimits() throws(NetworkError) {
        let counts = [
            ("limits.connectionsPerHost", limits.connectionsPerHost), ("limits.connections", limits.connections),
            ("limits.transfersPerHost", limits.transfersPerHost), ("limits.responseFields", limits.responseFields),
            ("limits.streamsPerConnection", limits.streamsPerConnection),
        ]
        for (name, value) in counts where value < 1 { throw refused("\(name) must be above zero") }
        let sizes = [
            ("limits.responseBody", limits.responseBody), ("limits.responseHead", limits.responseHead),
            ("buffers.highWater", buffers.highWater), ("buffers.receive", buffers.receive),
        ]
        for (name, value) in sizes where value < 1 { throw refused("\(name) must be above zero") }
        if limits.idleConnectionLifetime < .zero {
            throw refused("limits.idleConnectionLifetime must not be negative")
        }
        if let lifetime = limits.connectionLifetime, lifetime <= .zero {
            throw refused("limits.connectionLifetime must be above zero")
        }
        if let count = limits.requestsPerConnection, count < 1 {
            throw refused("limits.requestsPerConnection must be above zero")
        }
        if let ping = http.ping, ping.interval < .milliseconds(10) || ping.limit < .milliseconds(10) {
            throw refused("http.ping must have times of at least 10 ms")
        }
        if let ratio = limits.decompressionRatio, ratio < 1 {
            throw refused("limits.decompressionRatio must be above zero")
        }
        if let way = limits.bandwidth.firstInvalid { throw refused("limits.bandwidth.\(way) must be above zero") }
        if let threshold = http.compression.threshold, threshold < 0 {
            throw refused("http.compression must not have a negative threshold")
        }
        if let rule = retry.firstBrokenRule { throw refused("retry.\(rule)") }
        if redirects.maximum < 0 { throw refused("redirects must not have a negative maximum") }
        if buffers.lowWater < 0 { throw refused("buffers.lowWater must not be negative") }
    }

    private func refused(_ rule: String) -> NetworkError {
        NetworkError(invalid: .configuration, "The session's configuration is not valid: \(rule).")
    }
}
