// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// A format of image files.
///
/// ```swift
/// let format = ImageFormat(signature: data)      // .png
/// ```
public enum ImageFormat: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Portable Network Graphics, also with animation (APNG).
    case png
    /// JPEG, baseline and progressive.
    case jpeg
    /// Graphics Interchange Format, also with animation.
    case gif
    /// WebP: lossy, lossless and animated.
    case webp
    /// Windows bitmap.
    case bmp
    /// Windows icon or cursor, a file of several images.
    case ico
    /// Tagged Image File Format, also with several pages.
    case tiff
    /// AV1 Image File Format.
    case avif
    /// Scalable Vector Graphics; its size is that of the viewport.
    case svg
    /// X bitmap: C source text of an image with two colours.
    case xbm

    /// The media type, as registered with IANA or in common use, such as `image/png`.
    public var mediaType: MediaType {
        switch self {
        case .png: "image/png"
        case .jpeg: "image/jpeg"
        case .gif: "image/gif"
        case .webp: "image/webp"
        case .bmp: "image/bmp"
        case .ico: "image/vnd.microsoft.icon"
        case .tiff: "image/tiff"
        case .avif: "image/avif"
        case .svg: "image/svg+xml"
        case .xbm: "image/x-xbitmap"
        }
    }

    /// The usual name, such as "PNG".
    public var description: String {
        switch self {
        case .webp: "WebP"
        default: rawValue.uppercased()
        }
    }
}
