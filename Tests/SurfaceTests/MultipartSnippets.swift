// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// The snippets about multipart bodies, as users write them; the documentation names them.

private struct Photo: Decodable, Sendable {}
private struct Search: Encodable, Sendable { var text: String }

private struct Picture {
    var bytes: [UInt8] = []
    init(_ type: String?) {}
    mutating func append(_ chunk: ByteChunk) { bytes += chunk }
}

private final class PartBar {
    func set(_ fraction: Double) {}
}

// Client/Body.swift
private func snippetOfMultipartBody(_ api: JSONClient, _ path: String) async throws {
    let form = Body.multipart {
        MultipartForm.Part("title", "Alps")
        MultipartForm.Part("image", file: path)
    }
    let photo = try await api.post("photos", form, as: Photo.self)
    print(photo)
}

// Multipart/MultipartForm.swift
func snippetOfMultipartForm(_ url: String, _ paths: [String]) -> Request {
    let form = MultipartForm {
        MultipartForm.Part("title", "Alps")
        for path in paths { MultipartForm.Part("image", file: path) }
    }
    let request = Request(.put, url, fields: form.fields, body: .multipart(form))
    return request
}

private func snippetOfPartProgress(_ form: MultipartForm, _ transfer: Transfer<Data>, _ bars: [PartBar]) async {
    for await progress in transfer.progress {
        for part in form.progress(at: progress) { bars[part.index].set(part.fraction ?? 0) }
    }
}

func snippetOfSpooling(_ api: JSONClient, _ form: MultipartForm, _ path: String) async throws {
    let (body, contentType) = try await form.spool(to: path)
    try await api.post("photos", .raw(body, type: contentType))
}

// Multipart/MultipartBoundary.swift
func snippetOfBoundary() {
    let form = MultipartForm(boundary: MultipartForm.Boundary("for a test") ?? MultipartForm.Boundary()) {
        MultipartForm.Part("a", "1")
    }
    print(form)
}

// Multipart/Part.swift
func snippetOfParts(_ thumbnail: Data, _ lines: AsyncStream<[UInt8]>) throws -> MultipartForm {
    try MultipartForm {
        MultipartForm.Part("title", "Alps")
        MultipartForm.Part("image", file: "/srv/alps.jpg")
        MultipartForm.Part("thumb", bytes: thumbnail, filename: "alps.png")
        MultipartForm.Part("log", stream: lines, filename: "log.txt")
        MultipartForm.Part(fields: ["Content-Disposition": "form-data; name=meta"], body: .text("{}"))
        try MultipartForm.Part.fields(of: Search(text: "tea"))
    }
}

// Multipart/MultipartSerializers.swift
private func snippetOfMultipartElements(_ api: JSONClient, _ show: (Picture) -> Void) async throws {
    var picture = Picture(nil)
    for try await element in api.stream("camera", using: .multipart) {
        switch element {
        case .part(let fields): picture = Picture(fields[.contentType])
        case .bytes(let chunk): picture.append(chunk)
        case .end: show(picture)
        }
    }
}

func snippetOfPartsOfAResponse(_ api: JSONClient) async throws {
    let parts = try await api.get("report", using: .parts)
    print(parts.map { $0.name ?? "" })
}
