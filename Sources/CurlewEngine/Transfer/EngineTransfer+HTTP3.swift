// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The reason why a session that allows HTTP/3 did not use it for a transfer.
package enum HTTP3Absence: Sendable, Hashable {
    /// The linked libcurl does not support HTTP/3.
    case notSupported
    /// HTTP/3 requires TLS.
    case withoutTLS
    /// The request uses a proxy or a Unix socket.
    case routed
    /// The connection serves only one transfer, or must be HTTP/1.1.
    case ownConnection
    /// The resolver names another port for the host.
    case otherPort
    /// Neither Alt-Svc nor an HTTPS record announces HTTP/3.
    case notAnnounced
    /// Another connection was open, or could be opened sooner.
    case otherWasFirst
}

extension EngineTransfer {
    /// The reason not to attempt HTTP/3; nil to attempt it.
    var reasonAgainstHTTP3: HTTP3Absence? {
        if !CurlVersion.current.hasHTTP3 { return .notSupported }
        if !plan.isSecure { return .withoutTLS }
        if let route = plan.target.route, route.proxy != nil || route.isSocket { return .routed }
        if isExclusive || loopState.usesHTTP1 { return .ownConnection }
        if loopState.name?.hasPorts == true { return .otherPort }
        // A record counts only for the default port (RFC 9460 §9.1).
        let isInRecord = plan.port == 443 && loopState.name?.offersHTTP3 == true
        return plan.offersHTTP3 || isInRecord ? nil : .notAnnounced
    }
}
