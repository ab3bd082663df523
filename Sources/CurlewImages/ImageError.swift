// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An image that cannot be read, decoded or written, with the reason and what to try.
///
/// ```swift
/// do {
///     let header = try ImageHeader(data)
///     print(header)
/// } catch where error.kind == .tooLarge {
///     print(error.hint ?? error.message)
/// } catch {
///     print(error.message)
/// }
/// ```
public struct ImageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of errors.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The first bytes are not those of an image that Curlew knows.
        case unknownFormat
        /// The format is known, but this machine has no decoder for it, or no encoder.
        case unsupportedFormat
        /// The bytes contradict their format.
        case malformed
        /// The bytes end before the image.
        case truncated
        /// The image has more pixels or bytes than a limit permits.
        case tooLarge
        /// The system has no memory for the pixels.
        case outOfMemory
        /// The file cannot be read.
        case unreadable
    }

    /// The kind of the error.
    public let kind: Kind
    /// The format, if it was found.
    public let format: ImageFormat?
    /// The description of the error in one sentence.
    public let message: String
    /// A suggestion for fixing the error; nil without one.
    public let hint: String?

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - kind: The kind of the error.
    ///   - format: The format of the image; nil, the default, if it is unknown.
    ///   - message: The description of the error in one sentence.
    ///   - hint: A suggestion for fixing the error; nil by default.
    public init(_ kind: Kind, format: ImageFormat? = nil, _ message: String, hint: String? = nil) {
        (self.kind, self.format, self.message, self.hint) = (kind, format, message, hint)
    }

    /// The message and the hint.
    public var description: String { hint.map { "\(message) \($0)" } ?? message }
}

extension ImageError {
    /// The error for a file that ends early.
    static let withoutSize = ImageError(
        .truncated, "The file ends before the size of the image.", hint: "Load the file again.")

    static func truncated(_ format: ImageFormat) -> ImageError {
        ImageError(
            .truncated, format: format, "The \(format) image ends before its last pixels.",
            hint: "Load the file again.")
    }

    static func unsupported(_ format: ImageFormat) -> ImageError {
        ImageError(
            .unsupportedFormat, format: format, "gdk-pixbuf on this machine has no module for \(format).",
            hint: format.package.map { "Install it: on Debian, apt-get install \($0)." })
    }
}

extension ImageError: LocalizedError {
    /// The description of the error, which is also `localizedDescription`.
    public var errorDescription: String? { message }

    /// The hint, or nil without a hint.
    public var recoverySuggestion: String? { hint }
}

extension ImageFormat {
    /// The package of Debian with the module of gdk-pixbuf; nil for formats that gdk-pixbuf has itself.
    fileprivate var package: String? {
        switch self {
        case .webp: "webp-pixbuf-loader"
        case .avif: "libavif-gdk-pixbuf"
        case .svg: "librsvg2-common"
        default: nil
        }
    }
}
