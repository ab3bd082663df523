// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Calls a closure with the parts of a file, on a thread that may block.
///
/// A path that is not a regular file, such as a pipe, is refused, because reading it may never end.
func readFile(_ path: String, _ body: (Span<UInt8>) throws(ImageError) -> Void) throws(ImageError) {
    let descriptor = path.utf8.contains(0) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    if path.utf8.contains(0) { errno = EINVAL }
    guard descriptor >= 0 else { throw .unreadable(path, errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .unreadable(path, errno) }
    guard status.st_mode & S_IFMT == S_IFREG else {
        throw ImageError(.unreadable, "“\(path)” is not a regular file.", hint: "Pass the path of an image file.")
    }
    let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 64 * 1024)
    defer { buffer.deallocate() }
    while true {
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        if count == 0 { return }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw .unreadable(path, errno) }
        try body(UnsafeBufferPointer(rebasing: buffer[..<count]).span)
    }
}

extension ImageError {
    fileprivate static func unreadable(_ path: String, _ code: Int32) -> ImageError {
        ImageError(.unreadable, "“\(path)” cannot be read: \(String(cString: strerror(code))).")
    }
}
