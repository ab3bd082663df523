// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewImages
import FoundationEssentials

// Snippets of the doc comments about headers of images, verbatim.

// ImageFormat.swift
func snippetOfImageFormat(_ data: Data) -> ImageFormat? {
    let format = ImageFormat(signature: data)  // .png
    return format
}

// Header/ImageSignature.swift
func snippetOfImageSignature(_ data: Data) -> ImageFormat? {
    let format = ImageFormat(signature: data.prefix(ImageFormat.signatureLength))
    return format
}

// Header/ImageHeader.swift
func snippetOfImageHeader(_ data: Data) throws {
    let header = try ImageHeader(data)
    print(header.format, header.uprightSize.width, header.uprightSize.height)
}

// Header/ImageHeader+Scanner.swift
func snippetOfImageHeaderScanner(_ stream: AsyncThrowingStream<Data, any Error>) async throws {
    var chunks = stream.makeAsyncIterator()
    var scanner = ImageHeader.Scanner()
    while scanner.header == nil, let chunk = try await chunks.next() {
        try scanner.append(chunk)
    }
    print(scanner.header?.width ?? 0)
}
