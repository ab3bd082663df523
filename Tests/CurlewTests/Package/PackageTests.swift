// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

/// The package as other packages see it through Swift Package Manager.
///
/// Skipped without a Swift Package Manager that runs in the environment of the test.
@Suite(.timeLimit(.minutes(5)))
struct PackageTests {
    /// A package with its dependencies, as `swift package show-dependencies` prints it.
    private struct Resolved: Decodable {
        var name: String
        var dependencies: [Resolved]
    }

    private static let products = ["Curlew", "CurlewAuth", "CurlewTerminal", "CurlewTesting", "CurlewXML"]

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    /// The path of the `swift` command, or nil if it does not run.
    private static func swift() async throws -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let paths = folders.map { "\($0)/swift" }
        guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { return nil }
        let output = try await ShellCommand.output("'\(path)' package --version && echo works")
        return String(decoding: output, as: UTF8.self).hasSuffix("works\n") ? path : nil
    }

    /// Resolves a package that depends on products of Curlew.
    ///
    /// - Returns: The package, or nil if it cannot be resolved, and the messages of Swift Package Manager.
    private func resolve(_ products: [String]) async throws -> (package: Resolved?, messages: String) {
        let swift = try #require(try await Self.swift())
        let folder = try Folder()
        try FileManager.default.createDirectory(atPath: folder("Sources/Consumer"), withIntermediateDirectories: true)
        folder.write("Sources/Consumer/main.swift", [])
        let names = products.map { #".product(name: "\#($0)", package: "curlew")"# }.joined(separator: ", ")
        let manifest = """
            // swift-tools-version: 6.2
            import PackageDescription
            let package = Package(
                name: "consumer", dependencies: [.package(name: "curlew", path: "\(Self.root)")],
                targets: [.executableTarget(name: "Consumer", dependencies: [\(names)])])
            """
        folder.write("Package.swift", Array(manifest.utf8))
        // Folders of its own, because `swift test` may hold the lock of the usual ones.
        let options = ["package", "scratch", "cache", "config", "security"].map { name in
            "--\(name)-path '\(name == "package" ? folder.path : folder(name))'"
        }
        let command = "'\(swift)' package \(options.joined(separator: " ")) show-dependencies --format json"
        let output = try await ShellCommand.output("\(command) 2> '\(folder("messages"))'")
        let messages = String(decoding: folder.bytes("messages") ?? [], as: UTF8.self)
        return (try? JSONDecoder().decode(Resolved.self, from: output), messages)
    }

    /// XC-03: every library is a product, and Curlew brings no other package along.
    @Test(.enabled("Swift Package Manager does not run") { try await PackageTests.swift() != nil })
    func packagesCanDependOnEveryProduct() async throws {
        let (package, messages) = try await resolve(Self.products)
        let curlew = try #require(package?.dependencies.first, "\(messages)")
        #expect(package?.dependencies.count == 1 && curlew.name == "curlew" && curlew.dependencies.isEmpty)
        // A missing product is an error, so the check above can fail.
        let (unresolved, refusal) = try await resolve(["CurlewMissing"])
        #expect(unresolved == nil && refusal.contains("'CurlewMissing'"), "\(refusal)")
    }
}
