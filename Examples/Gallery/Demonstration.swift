// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewImages
import CurlewTesting
import FoundationEssentials

/// A demonstration with a local server that has a page of images in several formats, one of them broken.
struct Demonstration {
    private let server: MockServer
    private let names: [String]

    init() async throws {
        var files: [(name: String, type: String, bytes: [UInt8])] = []
        for number in 0..<14 {
            let picture = try Self.picture(number)
            let isPhoto = number % 2 == 0
            let file = try await picture.encoded(as: isPhoto ? .jpeg(quality: 90) : .png)
            files.append(
                ("picture-\(number).\(isPhoto ? "jpg" : "png")", isPhoto ? "image/jpeg" : "image/png", Array(file)))
        }
        // A photo that the camera has turned: the first segment states the orientation (Exif 2.3, tag 274).
        let exif: [UInt8] =
            [0xFF, 0xE1, 0, 34] + Array("Exif\0\0MM\0*".utf8)
            + [0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        files.append(("turned.jpg", "image/jpeg", files[0].bytes.prefix(2) + exif + files[0].bytes.dropFirst(2)))
        files.append(("broken.png", "image/png", Array(files[1].bytes.dropLast(files[1].bytes.count / 2))))
        names = files.map(\.name)
        server = try MockServer()
        let links = names.map { "<li><a href='\($0)'><img src=\"./\($0)\" alt></a>" }.joined()
        let page =
            "<!doctype html><meta charset=utf-8><title>Photos</title><ul>\(links)<li><a href='/'>Home</a></ul>"
        server.on("GET", "/photos/", .bytes(Array(page.utf8)).field("Content-Type", "text/html"))
        for file in files {
            server.on("GET", "/photos/" + file.name, .bytes(file.bytes).field("Content-Type", file.type))
        }
    }

    /// A picture of rings, with a size and colours of its own.
    private static func picture(_ number: Int) throws -> DecodedImage {
        let (width, height) = (200 + number * 37 % 160, 140 + number * 53 % 160)
        var pixels: [UInt8] = []
        pixels.reserveCapacity(width * height * 3)
        for y in 0..<height {
            for x in 0..<width {
                let (across, down) = (x - width / 2, y - height / 2)
                let ring = (across * across + down * down) / (400 + 60 * number) % 2 == 0
                let shade = UInt8((x + y) * 120 / (width + height))
                let tint = UInt8(number * 255 / 14)
                pixels += ring ? [tint, 60 + shade, 255 - tint] : [255 - tint, 230 - shade, tint]
            }
        }
        return try DecodedImage(pixels: pixels, width: width, height: height)
    }

    /// Runs the demonstration; returns the status of the program, 0 if all results are as expected.
    func run(writing file: String) async throws -> Int32 {
        var unexpected = 0
        func check(_ line: String, _ isExpected: Bool) {
            if !isExpected { unexpected += 1 }
            print(line + (isExpected ? "" : " <- unexpected"))
        }
        let loader = ImageLoader()
        print("The images of \(server.url("/photos/")):")
        let (sheet, failures) = try await Gallery.sheet(of: server.url("/photos/"), by: loader)
        let cells = names.count - 1
        let columns = 6
        let rows = (cells + columns - 1) / columns
        check(
            "\(cells) thumbnails on a sheet of \(sheet.width) × \(sheet.height)",
            sheet.width == columns * 136 + 8 && sheet.height == rows * 136 + 8)
        let broken = failures["broken.png"]?.cause as? ImageError
        check(
            "1 broken image: \(broken?.kind.rawValue ?? "not found")", failures.count == 1 && broken?.kind == .truncated
        )

        let before = server.requests.count
        let (again, _) = try await Gallery.sheet(of: server.url("/photos/"), by: loader)
        let requests = server.requests.dropFirst(before).map(\.path)
        check(
            "once more: \(requests.count) requests, for the page and the broken image",
            Set(requests) == ["/photos/", "/photos/broken.png"] && again.width == sheet.width)
        try await Gallery.write(sheet, to: file)
        let written = try await DecodedImage(file: file)
        check("the file can be opened", written.frames[0].bytes == sheet.frames[0].bytes)
        print("\(unexpected) unexpected results")
        return unexpected == 0 && server.violations.isEmpty ? 0 : 1
    }
}
