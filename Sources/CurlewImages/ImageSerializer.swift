// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// A serializer that decodes a response as an image while its bytes arrive.
///
/// ```swift
/// let avatar = try await api.get("avatar.png", using: .image)
/// let thumbnail = try await api.get("photo.jpg", using: .image(.fitting(width: 320, height: 320)))
/// ```
///
/// Decoding runs on threads of its own, as many as the machine has processors. The format is that of the bytes,
/// even if the response states another image type. A response with an unacceptable status is not decoded.
public struct ImageSerializer: ResponseSerializer {
    /// The size, the frames and the limits.
    public let options: DecodedImage.Options

    /// Creates a serializer.
    ///
    /// - Parameter options: The size, the frames and the limits.
    public init(_ options: DecodedImage.Options = DecodedImage.Options()) { self.options = options }

    /// The image types that this machine can decode, and other image types with a low quality.
    ///
    /// Any image type is acceptable, because the bytes decide.
    public var accepts: [MediaType] { Self.types }

    /// True.
    public var readsArrivingBody: Bool { true }

    private static let types =
        ImageFormat.allCases.filter { $0.isDecodable && $0 != .svg }.flatMap(\.mediaTypes) + ["image/*;q=0.1"]

    /// Decodes the body while it arrives.
    ///
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``ImageError``, or the error of the
    ///   transfer.
    public func output(from response: IncomingResponse) async throws -> DecodedImage {
        let decoder = ImageDecoder(options)
        do {
            for try await chunk in response.bytes { try await decoder.append(chunk) }
            return try await decoder.finish()
        } catch let error as ImageError {
            throw NetworkError(error, of: "body")
        }
    }
}

extension ResponseSerializer where Self == ImageSerializer {
    /// A serializer that decodes the body as an image of its full size.
    public static var image: ImageSerializer { ImageSerializer() }

    /// Returns a serializer that decodes the body as an image.
    ///
    /// - Parameter options: The size, the frames and the limits.
    public static func image(_ options: DecodedImage.Options) -> ImageSerializer { ImageSerializer(options) }
}

extension ImageHeader {
    /// A serializer that reads the format and the size of an image, and ends the transfer then.
    ///
    /// Most images need a few hundred bytes. Frames and an orientation that a format stores behind the pixels are then
    /// missing; ``ImageHeader/Scanner`` reads a whole file.
    ///
    /// ```swift
    /// let size = try await api.get("photo.jpg", using: .imageHeader).uprightSize
    /// ```
    public struct Serializer: ResponseSerializer {
        /// Creates a serializer.
        public init() {}

        /// Any image type, because no decoder is needed.
        public var accepts: [MediaType] { ["image/*"] }

        /// True: the transfer ends as soon as the size is known.
        public var readsArrivingBody: Bool { true }

        /// Reads the body up to the size of the image.
        ///
        /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``ImageError``, or the error of the
        ///   transfer.
        public func output(from response: IncomingResponse) async throws -> ImageHeader {
            var scanner = Scanner()
            do {
                for try await chunk in response.bytes {
                    try chunk.withSpan { span throws(ImageError) in try scanner.append(span) }
                    if let header = scanner.header { return header }
                }
                try scanner.finish()
            } catch let error as ImageError {
                throw NetworkError(error, of: "body")
            }
            throw NetworkError(.withoutSize, of: "body")
        }
    }
}

extension ResponseSerializer where Self == ImageHeader.Serializer {
    /// A serializer that reads the format and the size of an image without decoding it.
    public static var imageHeader: ImageHeader.Serializer { ImageHeader.Serializer() }
}

extension ImageFormat {
    /// Whether gdk-pixbuf on this machine has a decoder for the format.
    public var isDecodable: Bool { PixbufLoader.readable.contains(self) }

    /// The media type and the other names that servers use for it.
    var mediaTypes: [MediaType] {
        switch self {
        case .bmp: [mediaType, "image/x-bmp", "image/x-win-bitmap"]
        case .ico: [mediaType, "image/x-icon", "image/ico"]
        default: [mediaType]
        }
    }
}

extension NetworkError {
    /// Wraps an image error for the caller of a request.
    ///
    /// - Parameters:
    ///   - subject: The thing that was decoded, such as the body.
    ///   - request: The request, if the caller does not add it.
    init(_ error: ImageError, of subject: String, _ request: Request? = nil) {
        let what = subject == "body" ? "The body cannot be decoded as an image" : "The \(subject) cannot be decoded"
        self.init(
            .decodingFailed, phase: .decoding, "\(what): \(error.message)", hint: error.hint, cause: error,
            request: request)
    }
}
