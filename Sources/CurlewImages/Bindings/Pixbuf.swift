// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// This folder contains the bindings to gdk-pixbuf, and the code that lends its memory to callers.

internal import CGdkPixbuf

/// Pixels of 8 bits for each channel, in memory of gdk-pixbuf: RGB or RGBA, with alpha that is not premultiplied.
final class Pixbuf: @unchecked Sendable {
    // Safe because the pixels never change after the initializer, and gdk-pixbuf counts references atomically.

    let raw: OpaquePointer

    /// Takes over one reference to a pixbuf that nothing changes any more.
    init(owning raw: OpaquePointer) { self.raw = raw }

    /// Takes over one reference; nil if a function of gdk-pixbuf has returned no pixbuf, because memory ran out.
    private static func owned(_ raw: OpaquePointer?) throws(ImageError) -> Pixbuf {
        guard let raw else { throw .outOfMemory(nil) }
        return Pixbuf(owning: raw)
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(raw)) }

    /// Copies pixels.
    ///
    /// - Parameter bytes: Rows from the top, without padding, of exactly the size of the image.
    init(_ bytes: some Collection<UInt8>, width: Int, height: Int, hasAlpha: Bool) throws(ImageError) {
        guard width > 0, height > 0, let columns = Int32(exactly: width), let rows = Int32(exactly: height),
            let raw = gdk_pixbuf_new(GDK_COLORSPACE_RGB, hasAlpha ? 1 : 0, 8, columns, rows)
        else { throw .outOfMemory(nil) }
        self.raw = raw
        let rowBytes = width * (hasAlpha ? 4 : 3)
        let stride = Int(gdk_pixbuf_get_rowstride(raw))
        guard let base = gdk_pixbuf_get_pixels(raw) else { return }
        let target = UnsafeMutableBufferPointer(start: base, count: stride * (height - 1) + rowBytes)
        var rest = bytes[...]
        for row in 0..<height {
            let start = row * stride
            _ = target[start..<(start + rowBytes)].update(fromContentsOf: rest.prefix(rowBytes))
            rest = rest.dropFirst(rowBytes)
        }
    }

    var width: Int { Int(gdk_pixbuf_get_width(raw)) }
    var height: Int { Int(gdk_pixbuf_get_height(raw)) }
    var channels: Int { Int(gdk_pixbuf_get_n_channels(raw)) }
    var hasAlpha: Bool { gdk_pixbuf_get_has_alpha(raw) != 0 }
    /// The distance between the starts of two rows.
    var bytesPerRow: Int { Int(gdk_pixbuf_get_rowstride(raw)) }
    /// The memory of the pixels.
    var byteCount: Int { bytesPerRow * height }

    /// Calls a closure with the bytes of all rows; the last row has no padding.
    func withBytes<Result, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let count = bytesPerRow * (height - 1) + width * channels
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeBufferPointer(start: gdk_pixbuf_read_pixels(raw), count: count).span)
    }

    // MARK: Changes

    /// Returns the same pixels in memory of their own.
    func copy() throws(ImageError) -> Pixbuf { try Pixbuf.owned(gdk_pixbuf_copy(raw)) }

    func scaled(width: Int, height: Int) throws(ImageError) -> Pixbuf {
        if width == self.width, height == self.height { return self }
        return try Pixbuf.owned(
            gdk_pixbuf_scale_simple(raw, Int32(clamping: width), Int32(clamping: height), GDK_INTERP_BILINEAR))
    }

    /// Returns the pixels upright.
    ///
    /// - Parameter orientation: How they are stored (Exif 2.3, tag 274).
    func upright(from orientation: ImageHeader.Orientation) throws(ImageError) -> Pixbuf {
        switch orientation {
        case .up: self
        case .upMirrored: try mirrored()
        case .down: try turned(GDK_PIXBUF_ROTATE_UPSIDEDOWN)
        case .downMirrored: try Pixbuf.owned(gdk_pixbuf_flip(raw, 0))
        case .leftMirrored: try turned(GDK_PIXBUF_ROTATE_CLOCKWISE).mirrored()
        case .right: try turned(GDK_PIXBUF_ROTATE_CLOCKWISE)
        case .rightMirrored: try turned(GDK_PIXBUF_ROTATE_COUNTERCLOCKWISE).mirrored()
        case .left: try turned(GDK_PIXBUF_ROTATE_COUNTERCLOCKWISE)
        }
    }

    private func mirrored() throws(ImageError) -> Pixbuf { try Pixbuf.owned(gdk_pixbuf_flip(raw, 1)) }

    private func turned(_ rotation: GdkPixbufRotation) throws(ImageError) -> Pixbuf {
        try Pixbuf.owned(gdk_pixbuf_rotate_simple(raw, rotation))
    }

    // MARK: Files

    /// Returns the file of the image.
    ///
    /// - Parameters:
    ///   - format: A format that gdk-pixbuf can write.
    ///   - options: Options of gdk-pixbuf's encoder.
    func encoded(as format: ImageFormat, _ options: KeyValuePairs<String, String>) throws(ImageError) -> [UInt8] {
        var buffer: UnsafeMutablePointer<gchar>?
        var count: gsize = 0
        var error: UnsafeMutablePointer<GError>?
        var keys = options.map { strdup($0.key) } + [nil]
        var values = options.map { strdup($0.value) } + [nil]
        defer { for text in keys + values { free(text) } }
        let isWritten = gdk_pixbuf_save_to_bufferv(raw, &buffer, &count, format.rawValue, &keys, &values, &error)
        defer { g_free(buffer) }
        guard isWritten != 0, let buffer else { throw ImageError(taking: error, format, "The image cannot be written") }
        return Array(UnsafeRawBufferPointer(start: buffer, count: Int(count)))
    }
}

extension ImageError {
    static func outOfMemory(_ format: ImageFormat?) -> ImageError {
        ImageError(
            .outOfMemory, format: format, "The system has no memory for the pixels.",
            hint: "Decode a smaller size, or lower the limits.")
    }

    /// Creates an error from one of gdk-pixbuf, which it frees.
    init(taking error: UnsafeMutablePointer<GError>?, _ format: ImageFormat, _ what: String) {
        guard let error else {
            self = ImageError(.malformed, format: format, "\(what): gdk-pixbuf gives no reason.")
            return
        }
        defer { g_error_free(error) }
        let reason = error.pointee.message.map { String(cString: $0) } ?? ""
        if curlew_pixbuf_is_out_of_memory(error) != 0 {
            self = .outOfMemory(format)
        } else if curlew_pixbuf_is_unsupported(error) != 0 {
            self = .unsupported(format)
        } else {
            self = ImageError(.malformed, format: format, "\(what): \(Self.brief(reason))")
        }
    }

    /// Returns the first line of a text of gdk-pixbuf, shortened, without control characters and as a sentence.
    private static func brief(_ text: String) -> String {
        let line = text.unicodeScalars.prefix { $0 != "\n" }
        let shown = String(line.prefix(160).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) })
        return shown.hasSuffix(".") ? shown : shown + "."
    }
}
