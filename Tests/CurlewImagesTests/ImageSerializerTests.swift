// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Foundation
import Testing

@testable import CurlewImages

private enum Content: Sendable {
    case image(DecodedImage)
    case text(String)
}

/// Images from responses.
@Suite(.timeLimit(.minutes(5)))
struct ImageSerializerTests {
    private func api(_ response: MockResponse) throws -> (MockServer, JSONClient) {
        let server = try MockServer { _ in response }
        return (server, Client(try BaseURL(server.url("/")), session: Session()))
    }

    private func response(_ data: Data, _ type: String = "image/png") -> MockResponse {
        .bytes(Array(data)).field("Content-Type", type)
    }

    @Test func imageIsDecoded() async throws {
        let (server, api) = try api(response(try await ImageSamples.png(40, 20)))
        let image = try await api.get("a.png", using: .image)
        #expect(image.width == 40 && image.hasHalves)
        let small = try await api.get("a.png", using: .image(.fitting(width: 10, height: 10)))
        #expect(small.width == 10)
        let accept = try #require(server.requests.first?.field("Accept"))
        for type in [
            "image/png", "image/jpeg", "image/gif", "image/tiff", "image/bmp", "image/x-bmp", "image/x-win-bitmap",
            "image/x-icon", "image/ico", "image/x-xbitmap",
        ] {
            #expect(accept.contains(type))
        }
        #expect(accept.contains("image/webp") == ImageFormat.webp.isDecodable)
        let value = try await api.transfer(.get, "a.png", using: .image).value
        #expect(value.hasHalves, "a transfer collects the body")
    }

    /// The format is that of the bytes, as in a browser.
    @Test func wrongImageTypeIsDecoded() async throws {
        let (server, api) = try api(response(ImageSamples.gif(4, 4, colours: [1]), "image/png"))
        #expect(try await api.get("", using: .image).header?.format == .gif)
        #expect(server.requests.count == 1)
    }

    /// The error names the package that is missing, although the format is not in `Accept`.
    @Test(.enabled(if: !ImageFormat.webp.isDecodable || !ImageFormat.avif.isDecodable || !ImageFormat.svg.isDecodable))
    func formatsWithoutADecoderNameThePackage() async throws {
        let svg = Data("<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>".utf8)
        let webp = Data(base64Encoded: "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==") ?? Data()
        let trusting = DecodedImage.Options(allowsSVG: true)
        for (format, data) in [(ImageFormat.svg, svg), (.webp, webp)] where !format.isDecodable {
            let (server, api) = try api(response(data, format.mediaType.description))
            let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .image(trusting)) }
            #expect(error?.hint?.contains("apt-get install") == true && server.requests.count == 1)
        }
    }

    @Test(.enabled(if: ImageFormat.svg.isDecodable, "librsvg has the decoder"))
    func vectorsAreDecoded() async throws {
        let svg = """
            <svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 20' width='40' height='20'>
            <rect width='20' height='20' fill='#f00'/><rect x='20' width='20' height='20' fill='#00f'/></svg>
            """
        let (server, api) = try api(response(Data(svg.utf8), "image/svg+xml"))
        let image = try await api.get("", using: .image(DecodedImage.Options(allowsSVG: true)))
        #expect(image.width == 40 && image.height == 20 && image.hasHalves)
        let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .image) }
        #expect(error?.hint == "Set allowsSVG if the image is trusted.")
        #expect(server.requests.allSatisfy { $0.field("Accept")?.contains("svg") == false })
    }

    @Test func otherTypesAndStatusesAreNotDecoded() async throws {
        let png = try await ImageSamples.png(4, 4)
        let (html, text) = try api(response(png, "text/html"))
        let type = await #expect(throws: NetworkError.self) { try await text.get("", using: .image) }
        #expect(type?.kind == .unacceptableContentType && html.requests.count == 1)
        let (missing, api) = try api(response(png).status(404))
        let status = await #expect(throws: NetworkError.self) { try await api.get("", using: .image) }
        #expect(status?.kind == .unacceptableStatus && status?.response?.status == .notFound)
        #expect(status?.body == Array(png) && missing.requests.count == 1)
    }

    @Test func brokenImageIsADecodingError() async throws {
        let png = try await ImageSamples.png(40, 20)
        let (server, api) = try api(response(png.dropLast(20)))
        let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .image) }
        #expect(error?.kind == .decodingFailed && error?.phase == .decoding)
        #expect((error?.cause as? ImageError)?.kind == .truncated && error?.response?.status == .ok)
        #expect(server.requests.count == 1)
    }

    /// The error comes while the server still sends.
    @Test func largeImageIsRefusedBeforeItsEnd() async throws {
        let png = try await ImageSamples.png(400, 300)
        let gate = Gate()
        let (server, api) = try api(response(png).fault(.stall(gate), at: .body(100)))
        defer { gate.open() }
        let error = await #expect(throws: NetworkError.self) {
            try await api.get("", using: .image(.init(limits: .init(pixels: 100))))
        }
        #expect((error?.cause as? ImageError)?.kind == .tooLarge)
        #expect(error?.hint == "Raise limits.pixels if the image is trusted.")
        await server.waitUntil(openConnections: 0)
    }

    @Test func lostConnectionIsAnErrorOfTheTransfer() async throws {
        let png = try await ImageSamples.png(400, 300)
        let (server, api) = try api(response(png).fault(.close, at: .body(100)))
        let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .image) }
        #expect(error?.kind == .connectionLost && server.requests.count >= 1)
    }

    @Test func cancelledTaskThrowsACancellation() async throws {
        let png = try await ImageSamples.png(400, 300)
        let gate = Gate()
        let (server, api) = try api(response(png).fault(.stall(gate), at: .body(100)))
        defer { gate.open() }
        let task = Task { try await api.get("", using: .image) }
        await gate.waitUntilReached()
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancellation == true)
        await server.waitUntil(openConnections: 0)
    }

    @Test func choiceOfSerializersDecodesImages() async throws {
        let (server, api) = try api(response(ImageSamples.cmyk, "image/jpeg"))
        let content = try await api.get(
            "", using: .oneOf(.when(.image, Content.image), .when(.text, Content.text)))
        guard case .image(let image) = content else {
            Issue.record("it was read as text")
            return
        }
        #expect(image.hasHalves && server.requests.count == 1)
    }

    // MARK: Headers

    @Test func headerNeedsOnlyTheFirstBytes() async throws {
        let jpeg = try await ImageSamples.jpeg(640, 480)
        let gate = Gate()
        let (server, api) = try api(
            response(ImageSamples.turned(jpeg, 6), "image/jpeg").fault(.stall(gate), at: .body(300)))
        defer { gate.open() }
        let header = try await api.get("", using: .imageHeader)
        #expect(header.format == .jpeg && header.width == 640 && header.height == 480)
        #expect(header.uprightSize == (480, 640) && header.orientation == .right)
        #expect(server.requests.first?.field("Accept") == "image/*")
        await server.waitUntil(openConnections: 0)
    }

    @Test func headersOfOtherBodiesAreErrors() async throws {
        for body in [Data("hello".utf8), Data(try await ImageSamples.png(4, 4).prefix(20)), Data()] {
            let (server, api) = try api(response(body))
            let error = await #expect(throws: NetworkError.self) { try await api.get("", using: .imageHeader) }
            #expect(error?.kind == .decodingFailed && error?.cause is ImageError && server.requests.count == 1)
        }
    }

    /// IM-15: the image of a downloaded file.
    @Test func downloadedFileIsDecoded() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-images-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let server = try MockServer { [png = try await ImageSamples.png(40, 20)] _ in .bytes(Array(png)) }
        let file = try await Session().download(
            Request(server.url("/photo.png")), to: .file(folder.appending(path: "photo.png").path))
        #expect(try await DecodedImage(file: file.path).hasHalves)
    }
}
