// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Writes bytes in small chunks on a separate thread, because a full pipe blocks, and closes the descriptor.
final class PipeWriter: Sendable {
    private let bytes: [UInt8]
    private let descriptor: CInt

    /// Takes ownership of the descriptor and starts writing; returns false if no thread could be created.
    static func start(_ bytes: [UInt8], to descriptor: CInt) -> Bool {
        let writer = Unmanaged.passRetained(PipeWriter(bytes, descriptor))
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { argument in
                argument.map { Unmanaged<PipeWriter>.fromOpaque($0).takeRetainedValue().write() }
                return nil
            }, writer.toOpaque())
        if failure != 0 { writer.release() } else { pthread_detach(thread) }
        return failure == 0
    }

    private init(_ bytes: [UInt8], _ descriptor: CInt) {
        self.bytes = bytes
        self.descriptor = descriptor
    }

    private func write() {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(3001))
            let count = Glibc.write(descriptor, part, part.count)
            if count <= 0 { break }
            rest = rest.dropFirst(count)
        }
        close(descriptor)
    }
}
