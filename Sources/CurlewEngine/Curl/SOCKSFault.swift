// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The reason why a SOCKS proxy opened no connection: the reply of the proxy (RFC 1928 §6), as libcurl reports it.
package enum SOCKSFault: Sendable, Hashable {
    /// The proxy does not accept the name and the password, or requires them.
    case credentials
    /// The name of the server has no address that the proxy can use.
    case noAddress
    /// The rules or the abilities of the proxy prevent the connection; half a sentence.
    case refused(String)
    /// The proxy did not reach the server; half a sentence.
    case unreachable(String)
    /// The proxy does not speak this version of SOCKS, or closed the connection.
    case broken

    /// - Parameter code: The value of CURLINFO_PROXY_ERROR.
    init(code: Int) {
        let known: [(CURLproxycode, SOCKSFault)] = [
            (CURLPX_NO_AUTH, .credentials), (CURLPX_USER_REJECTED, .credentials), (CURLPX_RECV_AUTH, .credentials),
            (CURLPX_SEND_AUTH, .credentials), (CURLPX_LONG_USER, .credentials), (CURLPX_LONG_PASSWD, .credentials),
            (CURLPX_RESOLVE_HOST, .noAddress), (CURLPX_LONG_HOSTNAME, .refused("the name of the server is too long")),
            (CURLPX_IDENTD, .refused("it found no identd on this machine")),
            (CURLPX_IDENTD_DIFFER, .refused("identd on this machine names another user")),
            (CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED, .refused("it does not support this type of address")),
            (CURLPX_REPLY_COMMAND_NOT_SUPPORTED, .refused("it does not support CONNECT")),
            (CURLPX_REPLY_CONNECTION_REFUSED, .unreachable("the server refused the connection")),
            (CURLPX_REPLY_GENERAL_SERVER_FAILURE, .unreachable("it reports a general failure")),
            (CURLPX_REPLY_HOST_UNREACHABLE, .unreachable("the host is unreachable")),
            (CURLPX_REPLY_NETWORK_UNREACHABLE, .unreachable("the network is unreachable")),
            (CURLPX_REPLY_NOT_ALLOWED, .refused("its rules forbid the connection")),
            (CURLPX_REPLY_TTL_EXPIRED, .unreachable("the connection timed out")),
            (CURLPX_REPLY_UNASSIGNED, .unreachable("it reports an unknown failure")),
            (
                CURLPX_REQUEST_FAILED,
                .unreachable("it rejected the request, or the server did not accept the connection")
            ),
            (CURLPX_UNKNOWN_FAIL, .unreachable("it reports an unknown failure")),
        ]
        self = known.first { Int($0.0.rawValue) == code }?.1 ?? .broken
    }
}
