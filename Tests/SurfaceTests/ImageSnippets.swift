// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewImages
import CurlewXML
import FoundationEssentials

// Snippets of Documentation/Images.md and of the doc comments, word for word; parameters provide the values that a
// snippet assumes.

private func guideToImages(_ api: JSONClient) async throws -> [DecodedImage] {
    let avatar = try await api.get("avatar.png", using: .image)
    let thumbnail = try await api.get("photo.jpg", using: .image(.fitting(width: 320, height: 320)))
    return [avatar, thumbnail]
}

private func guideToFrames(_ data: Data) async throws {
    let animation = try await DecodedImage(data)
    for frame in animation.frames {
        let red = frame.withPixels { $0[0] }
        print(frame.duration ?? .zero, red)
    }
}

private func guideToFiles() async throws {
    let photo = try await DecodedImage(file: "photo.jpg", options: .fitting(width: 1024, height: 1024))
    try await photo.encoded(as: .jpeg(quality: 80)).write(to: URL(filePath: "small.jpg"))
}

private func guideToHeaders(_ api: JSONClient) async throws {
    let header = try await api.get("photo.jpg", using: .imageHeader)
    print(header.format, header.uprightSize)
}

private func guideToLoading() async throws -> [DecodedImage] {
    let loader = ImageLoader()
    let avatar = try await loader.image("https://example.com/avatar.png").image
    let thumbnail = try await loader.image(
        "https://example.com/photo.jpg", options: .fitting(width: 320, height: 320)
    ).image
    return [avatar, thumbnail]
}

private func guideToPreviews(_ loader: ImageLoader) async throws -> DecodedImage {
    let load = await loader.load("https://example.com/panorama.jpg")
    for await preview in load.previews { print(preview.width, preview.height) }
    let panorama = try await load.value.image
    return panorama
}

private func guideToProcessors(_ loader: ImageLoader) async throws {
    let small = ImageLoader.Processor("small") { try await $0.scaled(toFit: 64, 64) }
    let icon = try await loader.image("https://example.com/icon.png", processor: small)

    let prefetch = await loader.prefetch(["https://example.com/1.jpg", "https://example.com/2.jpg"])
    print(await prefetch.loaded(), icon.source)
}

private func guideToPlaces(_ loader: ImageLoader, _ url: String, _ show: (DecodedImage) -> Void) async throws {
    let slot = LatestOnly()
    if let image = try await slot.run(url, { try await loader.image(Request(url)).image }) {
        show(image)
    }
}

// ImageCache.swift, ImageFormat.swift, ImageError.swift and the others.

private struct NoCache: ImageCaching {
    func image(for key: ImageCache.Key) -> DecodedImage? { nil }
    func add(_ image: DecodedImage, for key: ImageCache.Key) -> Bool { false }
    func remove(_ key: ImageCache.Key) -> Bool { false }
    func removeAll() -> Bool { false }
}

private func snippetOfCaches() -> [ImageLoader] {
    let cache = ImageCache(capacity: .mebibytes(200), preferredCost: .mebibytes(120))
    let loader = ImageLoader(cache: cache)
    return [loader, ImageLoader(cache: NoCache())]
}

private func snippetOfKeys() -> ImageCache.Key {
    let key = ImageCache.Key("https://example.com/photo.jpg", variant: "round")
    return key
}

private func snippetOfErrors(_ data: Data) {
    do {
        let header = try ImageHeader(data)
        print(header)
    } catch  where error.kind == .tooLarge {
        print(error.hint ?? error.message)
    } catch {
        print(error.message)
    }
}

private func snippetOfFormats(_ data: Data) -> ImageFormat? {
    let format = ImageFormat(signature: data)  // .png
    return format
}

private func snippetOfThumbnails() async throws -> DecodedImage.Options {
    let thumbnail: DecodedImage.Options = .fitting(width: 160, height: 160)
    let photo = try await DecodedImage(file: "photo.jpg", options: .fitting(width: 320, height: 320))
    try await photo.encoded(as: .png).write(to: URL(filePath: "thumbnail.png"))
    return thumbnail
}

private func snippetOfConfigurations() -> ImageLoader {
    let loader = ImageLoader { $0.order = .lifo }
    return loader
}

private func snippetOfKeyedPlaces(_ loader: ImageLoader, _ url: String) async throws -> DecodedImage? {
    let slots = LatestOnly.Keyed<String>()
    let image = try await slots.run("background", url) { try await loader.image(Request(url)).image }
    return image
}

private func readmeOfImagesAndPages(_ api: JSONClient) async throws {
    let thumbnail = try await api.get("photo.jpg", using: .image(.fitting(width: 320, height: 320)))
    let title = try await api.get("index.html", using: .html).title
    print(thumbnail.width, title ?? "")
}

private func snippetOfHeaderSerializers(_ api: JSONClient) async throws {
    let size = try await api.get("photo.jpg", using: .imageHeader).uprightSize
    print(size)
}

private func snippetOfPrefetching(_ loader: ImageLoader) async {
    let prefetch = await loader.prefetch(["https://example.com/1.jpg", "https://example.com/2.jpg"])
    print(await prefetch.loaded())  // 2
}
