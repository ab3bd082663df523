// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Returns the engine's check of a head that it gets line by line; nil if it refuses the head or the head has no end.
func accepted(_ input: [UInt8]) -> HeadCheck? {
    var check = HeadCheck()
    for line in input.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
        switch (Array(line) + [0x0A]).withUnsafeBytes({ check.take($0) }) {
        case .more: continue
        case .end: return check
        case .refused: return nil
        }
    }
    return nil
}
