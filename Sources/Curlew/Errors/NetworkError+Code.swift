// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension NetworkError {
    /// A stable text for logs and dashboards, from kind and phase: "curlew.timed_out.connecting".
    public var code: String { "curlew.\(kind.rawValue).\(phase)" }

    /// An exit status for command-line programs, with the meaning `sysexits.h` gives it.
    ///
    /// | Status | Kinds |
    /// | --- | --- |
    /// | 64 usage | `invalidRequest` |
    /// | 65 bad data | `encodingFailed`, `decodingFailed`, `unacceptableContentType`, `bodyTooLarge` |
    /// | 65 bad data | `checksumMismatch` |
    /// | 66 no input | `bodyFailed`, `bodyNotReplayable`, `cacheMiss` |
    /// | 68 no host | `cannotResolve` |
    /// | 69 unavailable | `cannotConnect`, `circuitOpen`, `unacceptableStatus`, `unsupported` |
    /// | 70 software | `internal`, `sessionClosed` and kinds without a row |
    /// | 71 system | `resourceExhausted` |
    /// | 73 cannot create | `destinationFailed` |
    /// | 74 input/output | `connectionLost`, `truncatedEncoding`, `cacheFailed` |
    /// | 75 try again | `timedOut`, `cancelled`, `contentChanged`, `unacceptableStatus` with 408, 429 or 503 |
    /// | 76 protocol | `tlsFailed`, `invalidResponse`, `corruptEncoding`, `tooManyRedirects` |
    /// | 77 not permitted | `untrusted`, `redirectRefused`, `authenticationFailed` |
    /// | 77 not permitted | `unacceptableStatus` with 401, 403 or 407 |
    public var exitCode: Int32 {
        if kind == .unacceptableStatus, let status = response?.status {
            if [.unauthorized, .forbidden, .proxyAuthenticationRequired].contains(status) { return 77 }
            if [.requestTimeout, .tooManyRequests, .serviceUnavailable].contains(status) { return 75 }
        }
        return Self.exitCodes[kind] ?? 70
    }

    private static let exitCodes: [Kind: Int32] = [
        .invalidRequest: 64,
        .encodingFailed: 65, .decodingFailed: 65, .unacceptableContentType: 65, .bodyTooLarge: 65,
        .checksumMismatch: 65,
        .bodyFailed: 66, .bodyNotReplayable: 66, .cacheMiss: 66,
        .cannotResolve: 68,
        .cannotConnect: 69, .circuitOpen: 69, .unacceptableStatus: 69, .unsupported: 69,
        .resourceExhausted: 71,
        .destinationFailed: 73,
        .connectionLost: 74, .truncatedEncoding: 74, .cacheFailed: 74,
        .timedOut: 75, .cancelled: 75, .contentChanged: 75,
        .tlsFailed: 76, .invalidResponse: 76, .corruptEncoding: 76, .tooManyRedirects: 76,
        .untrusted: 77, .redirectRefused: 77, .authenticationFailed: 77,
    ]
}
