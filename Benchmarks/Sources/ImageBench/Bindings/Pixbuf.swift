// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CPixbuf
internal import FoundationEssentials

/// Decodes a file to a thumbnail with gdk-pixbuf alone; returns its width.
func thumbnailWidth(_ data: Data, _ side: Int) -> Int {
    data.withUnsafeBytes { bytes in
        Int(bench_pixbuf_thumbnail(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, Int32(side)))
    }
}
