// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Returns a host and a port as they are written in a URL, with brackets around an IPv6 address.
package func authority(_ host: String, _ port: some BinaryInteger) -> String {
    host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
}
