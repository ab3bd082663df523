// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Measuring

/// A stream that repeats the same bytes up to a length.
final class PieceStream: InputStream {
    private var left: Int

    init(length: Int) {
        left = length
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { left > 0 }
    override var streamStatus: Stream.Status { left > 0 ? .open : .atEnd }
    override func open() {}
    override func close() {}

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let count = min(left, maxLength)
        memset(buffer, 120, count)
        left -= count
        return count
    }
}

/// Writes a chunk of a body without copying it.
func write(_ data: Data, to file: OutputFile) { data.withUnsafeBytes { file.write($0) } }
