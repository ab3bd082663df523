// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CGdkPixbuf

/// gdk-pixbuf's decoder of one image, which reads its bytes in parts; one thread at a time may use it.
final class PixbufLoader {
    /// A size in pixels.
    struct Size: Equatable {
        var width: Int
        var height: Int
    }

    private static let maximumWrite = 64 * 1024

    private let raw: UnsafeMutablePointer<GdkPixbufLoader>
    private let format: ImageFormat
    private let choice: Choice
    private var isClosed = false

    /// The decision about a size, with an address that does not change.
    private final class Choice {
        let decide: (Size) -> Result<Size, ImageError>
        var target: Size?
        var refusal: ImageError?

        init(_ decide: @escaping (Size) -> Result<Size, ImageError>) { self.decide = decide }
    }

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - format: The format of the bytes; the loader reads no other format.
    ///   - decide: Returns the size to decode to for a size in the file, or an error that ends decoding before memory
    ///     is taken.
    init(_ format: ImageFormat, deciding decide: @escaping (Size) -> Result<Size, ImageError>) throws(ImageError) {
        var error: UnsafeMutablePointer<GError>?
        guard let raw = gdk_pixbuf_loader_new_with_type(format.rawValue, &error) else {
            throw ImageError(taking: error, format, "The decoder cannot be started")
        }
        self.raw = raw
        self.format = format
        choice = Choice(decide)
        let context = Unmanaged.passUnretained(choice).toOpaque()
        curlew_pixbuf_on_size(
            raw,
            { loader, width, height, context in
                guard let loader, let context else { return }
                let choice = Unmanaged<Choice>.fromOpaque(context).takeUnretainedValue()
                switch choice.decide(Size(width: Int(width), height: Int(height))) {
                case .success(let size):
                    choice.target = size
                    if size.width != Int(width) || size.height != Int(height) {
                        gdk_pixbuf_loader_set_size(loader, Int32(clamping: size.width), Int32(clamping: size.height))
                    }
                case .failure(let refusal):
                    choice.refusal = choice.refusal ?? refusal
                    // Decoders stop at a size of 0.
                    gdk_pixbuf_loader_set_size(loader, 0, 0)
                }
            }, context)
    }

    deinit {
        // A loader must be closed before it is released.
        if !isClosed { gdk_pixbuf_loader_close(raw, nil) }
        g_object_unref(raw)
    }

    /// The size to decode to; nil before the decoder has reported the size in the file.
    var target: Size? { choice.target }

    /// Decodes the next bytes.
    func write(_ bytes: Span<UInt8>) throws(ImageError) {
        // gdk-pixbuf removes each block of a GIF file from the start of its buffer, which is slow for a large buffer.
        for start in stride(from: 0, to: bytes.count, by: Self.maximumWrite) {
            let piece = bytes.extracting(start..<min(start + Self.maximumWrite, bytes.count))
            let failure = piece.withUnsafeBufferPointer { write($0) }
            if let failure { throw failure }
        }
    }

    private func write(_ bytes: UnsafeBufferPointer<UInt8>) -> ImageError? {
        var error: UnsafeMutablePointer<GError>?
        guard let base = bytes.baseAddress, bytes.count > 0 else { return nil }
        let isRead = gdk_pixbuf_loader_write(raw, base, gsize(bytes.count), &error) != 0
        if isRead, choice.refusal == nil { return nil }
        let failure = ImageError(taking: error, format, "The \(format) image cannot be decoded")
        return choice.refusal ?? failure
    }

    /// Ends the image.
    func close() throws(ImageError) {
        var error: UnsafeMutablePointer<GError>?
        isClosed = true
        let isRead = gdk_pixbuf_loader_close(raw, &error) != 0
        if isRead, choice.refusal == nil { return }
        let failure = ImageError(taking: error, format, "The \(format) image cannot be decoded")
        throw choice.refusal ?? failure
    }

    /// Returns a copy of the pixels that are decoded so far; nil before the size is known.
    func preview() throws(ImageError) -> Pixbuf? {
        guard let pixels = gdk_pixbuf_loader_get_pixbuf(raw) else { return nil }
        return try Pixbuf(owning: OpaquePointer(g_object_ref(UnsafeMutableRawPointer(pixels)))).copy()
    }

    /// Returns the frames after the end of the image, at least one.
    ///
    /// - Parameters:
    ///   - maximum: The maximum number of frames.
    ///   - check: Called before each frame that is not the first one, with the memory of the frames so far.
    func frames(
        _ maximum: Int, _ check: (Int) throws(ImageError) -> Void
    ) throws(ImageError) -> [(pixels: Pixbuf, milliseconds: Int?)] {
        guard let animation = gdk_pixbuf_loader_get_animation(raw) else {
            throw .truncated(format)
        }
        if maximum == 1 || gdk_pixbuf_animation_is_static_image(animation) != 0 {
            guard let still = gdk_pixbuf_loader_get_pixbuf(raw) else {
                throw .truncated(format)
            }
            return [(Pixbuf(owning: OpaquePointer(g_object_ref(UnsafeMutableRawPointer(still)))), nil)]
        }
        guard let iterator = curlew_pixbuf_frames(animation) else { throw .outOfMemory(format) }
        defer { g_object_unref(UnsafeMutableRawPointer(iterator)) }
        var frames: [(pixels: Pixbuf, milliseconds: Int?)] = []
        var time = 0
        var bytes = 0
        while frames.count < maximum {
            guard let shown = gdk_pixbuf_animation_iter_get_pixbuf(iterator) else { break }
            // The iterator draws the next frame into the same memory.
            let copy = try Pixbuf(owning: OpaquePointer(g_object_ref(UnsafeMutableRawPointer(shown)))).copy()
            let delay = Int(gdk_pixbuf_animation_iter_get_delay_time(iterator))
            frames.append((copy, delay < 0 ? nil : delay))
            // Each frame also has objects of gdk-pixbuf and of its own.
            bytes += copy.byteCount + 512
            // In a complete image, the frame that is still loading is the last one.
            if delay < 0 || gdk_pixbuf_animation_iter_on_currently_loading_frame(iterator) != 0 { break }
            if frames.count < maximum { try check(bytes) }
            time += delay
            // The decoder of WebP shows a frame until its time has passed.
            if curlew_pixbuf_advance(iterator, format == .webp ? time + 1 : time) == 0 { break }
        }
        return frames
    }

    // MARK: Formats

    /// The formats that the decoders on this machine read.
    static let readable: Set<ImageFormat> = formats()

    private static func formats() -> Set<ImageFormat> {
        var found: Set<ImageFormat> = []
        let list = gdk_pixbuf_get_formats()
        defer { g_slist_free(list) }
        var next = list
        while let entry = next?.pointee {
            next = entry.next
            guard let data = entry.data else { continue }
            let format = OpaquePointer(data)
            guard gdk_pixbuf_format_is_disabled(format) == 0, let name = gdk_pixbuf_format_get_name(format)
            else { continue }
            if let known = ImageFormat(rawValue: String(cString: name)) { found.insert(known) }
            g_free(name)
        }
        return found
    }
}
