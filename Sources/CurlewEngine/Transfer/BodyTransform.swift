// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Transforms a request body before it is sent; only one producer at a time uses it.
package protocol BodyTransform: AnyObject {
    /// Returns the bytes to send for the given ones; with `flush`, this includes the output for all earlier bytes.
    func transform(_ bytes: [UInt8], flush: Bool) throws -> [UInt8]

    /// Returns the remaining bytes at the end of the body.
    func finish() throws -> [UInt8]
}
