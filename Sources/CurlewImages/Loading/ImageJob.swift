// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewSupport

/// The work for the requests that share an image: the transfer, the decoding and the processor.
final class ImageJob: Sendable {
    let request: Request
    let key: ImageCache.Key
    private let options: DecodedImage.Options
    private let processor: ImageLoader.Processor?
    private let shared: ImageLoader.SharedKey?
    /// Whether other requests may share the transfer and the image.
    var isSharable: Bool { shared != nil }
    /// The requests by their numbers.
    private let cores = Lock<[UInt64: ImageLoader.Load.Core]>([:])

    init(
        _ request: Request, _ options: DecodedImage.Options, _ processor: ImageLoader.Processor?,
        _ key: ImageCache.Key, _ shared: ImageLoader.SharedKey?
    ) {
        (self.request, self.options, self.processor) = (request, options, processor)
        (self.key, self.shared) = (key, shared)
    }

    func add(_ core: ImageLoader.Load.Core, _ number: UInt64) { cores.withLock { $0[number] = core } }

    func remove(_ number: UInt64) { _ = cores.withLock { $0.removeValue(forKey: number) } }

    /// Ends the requests, in the order in which they came.
    func end(_ result: Result<ImageLoader.Loaded, NetworkError>) {
        let ended = cores.withLock { cores in
            defer { cores = [:] }
            return cores.sorted { $0.key < $1.key }
        }
        for (_, core) in ended { _ = core.end(result) }
    }

    /// Whether a request wants previews.
    var wantsPreviews: Bool { cores.withLock { Array($0.values) }.contains(where: \.wantsPreviews) }

    func show(_ preview: DecodedImage) {
        for core in cores.withLock({ Array($0.values) }) { core.show(preview) }
    }

    // MARK: Running

    func run(
        _ session: Session, _ parts: PartialImages, _ configuration: ImageLoader.Configuration
    ) async -> Result<ImageLoader.Loaded, NetworkError> {
        do {
            let loaded = try await load(session, parts, configuration)
            guard let processor else { return .success(loaded) }
            let image = try await processor.process(loaded.image)
            return .success(ImageLoader.Loaded(image: image, source: loaded.source, head: loaded.head))
        } catch let error as NetworkError {
            return .failure(error)
        } catch let error as ImageError {
            return .failure(NetworkError(error, of: "image", request))
        } catch {
            let kind: NetworkError.Kind = error is CancellationError ? .cancelled : .decodingFailed
            return .failure(
                NetworkError(
                    kind, phase: .decoding, "The processor “\(processor?.name ?? "")” failed.", cause: error,
                    request: request))
        }
    }

    private func load(
        _ session: Session, _ parts: PartialImages, _ configuration: ImageLoader.Configuration
    ) async throws -> ImageLoader.Loaded {
        if let local = try LocalImage(request, isAllowed: configuration.allowsLocalURLs) {
            let decoder = ImageDecoder(options)
            let image =
                switch local {
                case .data(let bytes): try await decoder.decode(bytes)
                case .file(let path): try await decoder.decode(file: path)
                }
            return ImageLoader.Loaded(image: image, source: .local, head: nil)
        }
        let part = shared.flatMap { parts.take($0) }
        do {
            return try await fetch(session, parts, configuration, resuming: part)
        } catch let error as NetworkError where part != nil && error.isAboutResuming {
            // The stored part does not fit, so the whole image is requested.
            return try await fetch(session, parts, configuration, resuming: nil)
        }
    }

    private func fetch(
        _ session: Session, _ parts: PartialImages, _ configuration: ImageLoader.Configuration,
        resuming part: PartialImages.Part?
    ) async throws -> ImageLoader.Loaded {
        var request = request
        let range = part?.request
        for (name, value) in range?.fields ?? [] { request.fields[name] = value }
        let receiving = ReceivedPart(part, limit: shared == nil ? 0 : parts.limit)
        do {
            let fetch = ImageFetch(
                options: options, interval: configuration.previewInterval, resuming: range, receiving: receiving,
                job: self)
            return try await session.value(for: request, using: fetch)
        } catch {
            // A response that was refused says nothing about the part.
            let refusals: [NetworkError.Kind] = [.decodingFailed, .unacceptableStatus, .unacceptableContentType]
            if !refusals.contains(error.kind), let shared, let part = receiving.part { parts.keep(part, for: shared) }
            throw error
        }
    }
}

/// The serializer of a job: decodes the body while it arrives, after the stored part if the response continues it.
struct ImageFetch: ResponseSerializer {
    /// The response does not continue the stored part.
    struct Mismatch: Error {
        let reason: String
    }

    let options: DecodedImage.Options
    let interval: Duration
    let resuming: RangeRequest?
    let receiving: ReceivedPart
    let job: ImageJob

    var accepts: [MediaType] { ImageSerializer().accepts }
    var readsArrivingBody: Bool { true }

    func output(from response: IncomingResponse) async throws -> ImageLoader.Loaded {
        let decoder = ImageDecoder(options)
        do {
            try await begin(response.head, decoder)
            var lastPreview = ContinuousClock.now
            for try await chunk in response.bytes {
                receiving.append(chunk)
                try await decoder.append(chunk)
                guard job.wantsPreviews, lastPreview.duration(to: .now) >= interval else { continue }
                if let preview = try await decoder.preview() { job.show(preview) }
                lastPreview = .now
            }
            let source: ImageLoader.Loaded.Source = response.head.cache?.isHit == true ? .cache : .network
            return ImageLoader.Loaded(image: try await decoder.finish(), source: source, head: response.head)
        } catch let error as ImageError {
            throw NetworkError(error, of: "body")
        }
    }

    /// Decodes the stored part, if the response continues it.
    private func begin(_ head: ResponseHead, _ decoder: ImageDecoder) async throws {
        guard let resuming else {
            receiving.begin(head)
            return
        }
        // The length of a decoded body is unknown.
        switch resuming.answer(head, isEncoded: head.contentLength == nil) {
        case .whole: receiving.begin(head)
        case .rest(let last, let total) where total == nil || last + 1 == total:
            try await decoder.append(receiving.bytes)
        case .rest: throw Mismatch(reason: "the part ends before the end of the resource")
        case .mismatch(let reason): throw Mismatch(reason: reason)
        case .complete, .error: throw Mismatch(reason: "the response is not a partial one")
        }
    }
}

extension NetworkError {
    /// Whether a request for a part failed because the server does not continue it.
    fileprivate var isAboutResuming: Bool {
        cause is ImageFetch.Mismatch || kind == .unacceptableStatus || kind == .unacceptableContentType
    }
}
