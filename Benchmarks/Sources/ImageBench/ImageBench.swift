// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the CPU time of 1,000 thumbnails, compared with gdk-pixbuf alone, in rounds that alternate.
//     image-bench [ROUNDS]

import CurlewImages
import FoundationEssentials
import Measuring

@main
struct ImageBench {
    private static let count = 1000
    private static let side = 128

    static func main() async throws {
        let rounds = max(CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 7, 1)
        let options = DecodedImage.Options.fitting(width: side, height: side)
        print("| image | bytes | gdk-pixbuf, µs | Curlew, µs | Curlew ÷ gdk-pixbuf |")
        print("|---|--:|--:|--:|--:|")
        for (name, data) in try await files() {
            var alone: [Double] = []
            var curlew: [Double] = []
            var ratios: [Double] = []
            for _ in 0..<rounds {
                let start = processTime()
                for _ in 0..<count where thumbnailWidth(data, side) != side { die("gdk-pixbuf fails") }
                let middle = processTime()
                for _ in 0..<count where try await DecodedImage(data, options: options).width != side {
                    die("Curlew fails")
                }
                let end = processTime()
                let times = (alone: Double(middle - start), curlew: Double(end - middle))
                alone.append(times.alone / Double(count) / 1000)
                curlew.append(times.curlew / Double(count) / 1000)
                ratios.append(times.curlew / times.alone)
            }
            let cells = [name, "\(data.count)"] + [alone, curlew].map { fixed(median($0), 1) }
            print("| " + (cells + [fixed(median(ratios), 3)]).joined(separator: " | ") + " |")
        }
    }

    /// Images like photos and screenshots: smooth colours with some noise.
    private static func files() async throws -> [(name: String, data: Data)] {
        let (photo, small) = (try picture(1600, 1200), try picture(400, 300))
        return [
            ("JPEG, 400 × 300", try await small.encoded(as: .jpeg())),
            ("JPEG, 1600 × 1200", try await photo.encoded(as: .jpeg())),
            ("PNG, 400 × 300", try await small.encoded(as: .png)),
        ]
    }

    private static func picture(_ width: Int, _ height: Int) throws -> DecodedImage {
        var state: UInt32 = 1
        var pixels: [UInt8] = []
        pixels.reserveCapacity(width * height * 3)
        for y in 0..<height {
            for x in 0..<width {
                state = state &* 1_664_525 &+ 1_013_904_223
                let noise = Int(state >> 28)
                pixels.append(UInt8((x * 200 / width + noise) & 0xFF))
                pixels.append(UInt8((y * 200 / height + noise) & 0xFF))
                pixels.append(UInt8(((x + y) * 100 / (width + height) + noise) & 0xFF))
            }
        }
        return try DecodedImage(pixels: pixels, width: width, height: height)
    }

    private static func fixed(_ value: Double, _ digits: Int) -> String {
        let scale = digits == 1 ? 10.0 : 1000
        return "\((value * scale).rounded() / scale)"
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
