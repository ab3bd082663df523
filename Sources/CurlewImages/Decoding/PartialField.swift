// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Array<UInt8> {
    /// Adds bytes to a field that arrives in parts; returns whether it is complete.
    ///
    /// - Parameters:
    ///   - count: The length of the field.
    ///   - bytes: The bytes that have arrived.
    ///   - position: The position of the next byte, which moves behind the taken ones.
    mutating func complete(to count: Int, from bytes: Span<UInt8>, _ position: inout Int) -> Bool {
        while self.count < count, position < bytes.count {
            append(bytes[position])
            position += 1
        }
        return self.count == count
    }
}
