// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Gallery loads the images that a web page lists and writes a contact sheet: one PNG file with a thumbnail of each.
//     Gallery http://example.com/photos/ sheet.png
// Without a page it uses a server of its own, and checks the results.

import Curlew
import CurlewImages
import CurlewXML
import FoundationEssentials
import Glibc

@main
struct Gallery {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            let page = arguments.first { $0.contains("://") }
            let file = arguments.last { !$0.contains("://") } ?? "gallery.png"
            guard arguments.count <= 2, arguments.count < 2 || page == arguments[0] else {
                print("usage: Gallery [URL-OF-A-PAGE] [FILE.png]")
                exit(2)
            }
            guard let page else { exit(try await Demonstration().run(writing: file)) }
            let (sheet, failures) = try await sheet(of: page, by: ImageLoader())
            try await write(sheet, to: file)
            exit(failures.isEmpty ? 0 : 1)
        } catch {
            print("Gallery: \(error)")
            exit(1)
        }
    }

    /// Loads the images that a page links to or shows, and returns their contact sheet and the errors.
    static func sheet(
        of page: String, by loader: ImageLoader
    ) async throws -> (image: DecodedImage, failures: [String: NetworkError]) {
        let urls = try await imageURLs(of: page, by: loader.session)
        // All images are queued at once; the loader runs four of them at a time.
        var loads: [(url: String, load: ImageLoader.Load)] = []
        for url in urls { loads.append((url, await loader.load(Request(url), options: ContactSheet.thumbnail))) }
        var sheet = ContactSheet()
        var failures: [String: NetworkError] = [:]
        for (url, load) in loads {
            let name = url.split(separator: "/").last.map(String.init) ?? url
            do throws(NetworkError) {
                let image = try await load.value.image
                sheet.add(image)
                let stored = image.header.map { "\($0.uprightSize.width) × \($0.uprightSize.height)" } ?? ""
                print(
                    "  \(name): \(image.header?.format.description ?? "") \(stored), shown as \(image.width) × \(image.height)"
                )
            } catch {
                failures[name] = error
                print("  \(name): \(error.message)")
            }
        }
        return (try sheet.image(), failures)
    }

    /// Returns the absolute URLs of the images of a page.
    private static func imageURLs(of page: String, by session: Session) async throws -> [String] {
        let document = try await session.value(for: Request(page), using: .html)
        let known = Set(["png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "tif", "tiff", "avif", "svg", "xbm"])
        var urls: [String] = []
        for attribute in try document.nodes("//img/@src | //a/@href") {
            let name = attribute.text.prefix { $0 != "?" && $0 != "#" }
            let isImage =
                attribute.parent?.name?.local == "img"
                || known.contains(name.split(separator: ".").last?.lowercased() ?? "")
            guard isImage, let url = URL(string: attribute.text, relativeTo: URL(string: page)) else { continue }
            if !urls.contains(url.absoluteString) { urls.append(url.absoluteString) }
        }
        return urls
    }

    static func write(_ sheet: DecodedImage, to file: String) async throws {
        try await sheet.encoded(as: .png).write(to: URL(filePath: file), options: .atomic)
        print("\(file): \(sheet.width) × \(sheet.height) pixels")
    }
}
