// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A serializer that reads the parts of a multipart response as they arrive: `multipart/mixed`, `byteranges`,
/// `x-mixed-replace`, or any other.
///
/// Each part is a `.part` with its fields, then its bytes as they arrive, then `.end`. Bytes before the first part and
/// after the last part are discarded. A nested multipart arrives as bytes. The serializer never holds a whole part in
/// memory.
///
/// ```swift
/// for try await element in api.stream("camera", using: .multipart) {
///     switch element {
///     case .part(let fields): picture = Picture(fields[.contentType])
///     case .bytes(let chunk): picture.append(chunk)
///     case .end: show(picture)
///     }
/// }
/// ```
public struct MultipartElements: StreamSerializer {
    /// The state between chunks.
    public struct State: Sendable {
        fileprivate var parser: MultipartParser
    }

    /// The limits of parts and fields.
    public let limits: MultipartElements.Limits

    /// Creates a serializer with limits; by default any number of parts, with at most 16 KiB of fields each.
    public init(_ limits: MultipartElements.Limits = MultipartElements.Limits(parts: nil)) { self.limits = limits }

    /// `multipart/*`.
    public var accepts: [MediaType] { [.multipart] }

    /// Creates the state, with the boundary that the `Content-Type` names.
    /// - Throws: `NetworkError` of kind `decodingFailed` if the `Content-Type` is not a multipart type with a valid
    ///   boundary.
    public func begin(_ head: ResponseHead) throws -> State {
        State(parser: MultipartParser(boundary: try boundary(of: head), limits: limits))
    }

    /// Returns the elements that a chunk completes.
    /// - Throws: `NetworkError` of kind `decodingFailed` for a body beyond the limits, or without the last boundary.
    public func decode(_ chunk: ByteChunk?, _ state: inout State) throws -> [MultipartElements.Element] {
        try elements(of: chunk, &state)
    }

    /// Appends the elements that a chunk completes.
    /// - Throws: `NetworkError` of kind `decodingFailed` for a body beyond the limits, or without the last boundary.
    public func decode(
        _ chunk: ByteChunk?, _ state: inout State, into elements: inout [MultipartElements.Element]
    ) throws {
        guard let chunk else { return try state.parser.finish { elements.append($0) } }
        try state.parser.read(chunk) { elements.append($0) }
    }
}

extension MultipartElements {
    /// A serializer that collects the parts of a multipart response.
    ///
    /// ```swift
    /// let parts = try await api.get("report", using: .parts)
    /// print(parts.map { $0.name ?? "" })
    /// ```
    public struct Collector: ResponseSerializer {
        /// The limits of parts and fields.
        public let limits: MultipartElements.Limits

        /// Creates a serializer with limits; by default 1000 parts, with at most 16 KiB of fields and 64 MiB of bytes
        /// each.
        public init(_ limits: MultipartElements.Limits = MultipartElements.Limits()) { self.limits = limits }

        /// `multipart/*`.
        public var accepts: [MediaType] { [.multipart] }

        /// Reads all parts.
        /// - Throws: `NetworkError`: `.bodyTooLarge`, `.decodingFailed` without a boundary, beyond the limits or if the
        ///   last boundary is missing, or the error that ended the transfer.
        public func output(from response: IncomingResponse) async throws -> [MultipartElements.Part] {
            var parser = MultipartParser(boundary: try boundary(of: response.head), limits: limits)
            var collection = PartCollector(limit: limits.part)
            let body = ByteChunk(try await response.collect())
            try parser.read(body) { element throws(NetworkError) in try collection.take(element) }
            try parser.finish { element throws(NetworkError) in try collection.take(element) }
            return collection.parts
        }
    }
}

extension StreamSerializer where Self == MultipartElements {
    /// The parts of a multipart response as they arrive, any number of them.
    public static var multipart: MultipartElements { MultipartElements() }

    /// The parts of a multipart response as they arrive, within limits.
    public static func multipart(_ limits: MultipartElements.Limits) -> MultipartElements { MultipartElements(limits) }
}

extension ResponseSerializer where Self == MultipartElements.Collector {
    /// All parts of a multipart response, 1000 at most.
    public static var parts: MultipartElements.Collector { MultipartElements.Collector() }

    /// All parts of a multipart response, within limits.
    public static func parts(_ limits: MultipartElements.Limits) -> MultipartElements.Collector {
        MultipartElements.Collector(limits)
    }
}

extension MediaType {
    /// `multipart/*`: bodies of several parts (RFC 2046 §5.1).
    public static let multipart: MediaType = "multipart/*"
}

/// A collection of the parts read so far.
private struct PartCollector {
    let limit: ByteCount
    var parts: [MultipartElements.Part] = []
    private var fields: HeaderFields = [:]
    private var body = Data()

    init(limit: ByteCount) { self.limit = limit }

    mutating func take(_ element: MultipartElements.Element) throws(NetworkError) {
        switch element {
        case .part(let fields):
            self.fields = fields
            body = Data()
        case .bytes(let chunk):
            guard Int64(body.count + chunk.count) <= limit.bytes else {
                throw .malformedMultipart(
                    "part \(parts.count + 1) has more than \(limit)",
                    hint: "Raise the limit of a part, or read it as it arrives: `using: .multipart`.")
            }
            body.append(contentsOf: chunk)
        case .end: parts.append(MultipartElements.Part(fields: fields, body: body))
        }
    }
}

/// Returns the boundary of a multipart response.
private func boundary(of head: ResponseHead) throws(NetworkError) -> String {
    let type = head.fields.values(for: .contentType).first.flatMap { MediaType($0) }
    guard let type, type.type == "multipart" else {
        throw .malformedMultipart(
            "its Content-Type is \(type.map { "\($0)" } ?? "missing")", hint: "Only a multipart response has parts.")
    }
    // Some servers send longer boundaries than RFC 2046 allows; a boundary with line breaks could never match.
    guard let text = type[parameter: "boundary"], (1...256).contains(text.utf8.count),
        !text.utf8.contains(where: \.isControl)
    else {
        throw .malformedMultipart(
            "its Content-Type names no boundary", hint: "The server must send a boundary (RFC 2046 §5.1.1).")
    }
    return text
}
