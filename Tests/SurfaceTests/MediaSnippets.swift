// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewMedia
import FoundationEssentials

// Snippets of Documentation/Media.md and of the doc comments, word for word; parameters provide the values that a
// snippet assumes.

private func guideToMedia(_ session: Session, _ play: (ByteChunk) -> Void) async throws {
    let cache = try await MediaCache(at: "/var/cache/player/media", session: session)
    let film = try await cache.media(for: "https://example.com/film.mp4")
    print(film.length ?? 0, film.contentType ?? "", film.storedRanges)
    for try await chunk in film.bytes(1_000_000..<2_000_000) { play(chunk) }
}

private func guideToFilling(_ session: Session) async throws {
    let configuration = MediaCache.Configuration(limit: .gibibytes(20), readAhead: .mebibytes(32))
    let large = try await MediaCache(at: "/srv/media", session: session, configuration: configuration)
    try await large.media(for: "https://example.com/film.mp4").fill()
}

private func guideToManagement(_ cache: MediaCache) async throws {
    for entry in cache.entries where !entry.isComplete { print(entry.id, entry.storedBytes) }
    print(cache.size)
    try await cache.remove("https://example.com/film.mp4")
    await cache.removeAll()
    await cache.close()
}

private func guideToPlayers(_ cache: MediaCache, _ token: String) async throws {
    let endpoint = try MediaEndpoint(cache)
    let request = Request("https://example.com/film.mp4", fields: [.authorization: "Bearer \(token)"])
    let url = try endpoint.url(for: request)
    print("mpv \(url)")
    await endpoint.close()
}

private func mediaCache(_ session: Session, _ play: (ByteChunk) -> Void) async throws {
    let cache = try await MediaCache(at: "/var/cache/player/media", session: session)
    let film = try await cache.media(for: "https://example.com/film.mp4")
    for try await chunk in film.bytes(1_000_000..<2_000_000) { play(chunk) }
}

private func media(_ cache: MediaCache, _ play: (ByteChunk) -> Void) async throws {
    let film = try await cache.media(for: "https://example.com/film.mp4")
    print(film.length ?? 0, film.contentType ?? "", film.storedRanges)
    for try await chunk in film.bytes(from: 500_000) { play(chunk) }
}

private func mediaBytes(_ film: MediaCache.Media) async throws -> Data {
    var header = Data()
    for try await chunk in film.bytes(0..<65_536) { header.append(contentsOf: chunk) }
    return header
}

private func mediaConfiguration() -> MediaCache.Configuration {
    let configuration = MediaCache.Configuration(limit: .gibibytes(20), readAhead: .mebibytes(32))
    return configuration
}

private func mediaEntry(_ cache: MediaCache) {
    for entry in cache.entries where !entry.isComplete { print(entry.storedBytes) }
}

private func mediaEndpoint(_ cache: MediaCache) async throws {
    let endpoint = try MediaEndpoint(cache)
    let url = try endpoint.url(for: "https://example.com/film.mp4")
    // mpv, VLC, GStreamer and browsers play http://127.0.0.1:…/…
    await endpoint.close()
    _ = url
}

private func mediaEndpointOptions(_ cache: MediaCache) throws {
    let endpoint = try MediaEndpoint(cache, options: MediaEndpoint.Options(connections: 8))
    _ = endpoint
}
