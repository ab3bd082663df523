// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Measuring

/// Writes a chunk of a body without copying it.
func write(_ chunk: ByteChunk, to file: OutputFile) { chunk.withUnsafeBytes { file.write($0) } }
