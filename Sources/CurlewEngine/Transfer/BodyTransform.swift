// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Changes a request body on its way to the wire; used by one producer at a time.
package protocol BodyTransform: AnyObject {
    /// What to send for the next bytes; with `flush` everything taken so far comes out.
    func transform(_ bytes: [UInt8], flush: Bool) throws -> [UInt8]

    /// What is left to send at the end.
    func finish() throws -> [UInt8]
}
