// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

/// Common mistakes in the use of clients, and mistakes with missing values and generic types: the compiler rejects each
/// at the right line with a helpful message.
///
/// Skipped without a compiler that can read the built module.
@Suite(.timeLimit(.minutes(5)))
struct CompileErrorTests {
    /// Functions with a mistake in their second line, and the compiler's message.
    private static let mistakes: [(code: String, message: String)] = [
        (
            """
            func aTextIsNoPath(_ api: JSONClient, _ text: String) async throws -> User {
                try await api.get(text)
            }
            """, "cannot convert value of type 'String' to expected argument type 'Path'"
        ),
        (
            #"""
            func anOptionalInAPath(_ api: JSONClient, _ id: Int?) async throws -> User {
                try await api.get("users/\(id)")
            }
            """#, "unwrap the optional: a path cannot contain a missing value"
        ),
        (
            """
            func nothingToRead(_ api: JSONClient) async throws {
                let user = try await api.get("users/1")
            }
            """, "say what to read: `as: User.self`, `using: .bytes` or `using: .empty`"
        ),
        (
            """
            func withoutAwait(_ api: JSONClient) async throws -> User {
                try api.get("users/1")
            }
            """, "expression is 'async' but is not marked with 'await'"
        ),
        (
            """
            func aValueIsNoBody(_ api: JSONClient, _ user: User) async throws {
                try await api.post("users", user)
            }
            """, "cannot convert value of type 'User' to expected argument type 'Body'"
        ),
        (
            """
            func notDecodable(_ api: JSONClient) async throws -> Opaque {
                try await api.get("users/1")
            }
            """, "requires that 'Opaque' conform to 'Decodable'"
        ),
        (
            """
            func aTextIsNoPart(_ api: JSONClient) async throws {
                try await api.post("photos", .multipart { "Alps" })
            }
            """, "a multipart body is made of `MultipartForm.Part(…)` values"
        ),
        (
            """
            func notPinned() throws {
                _ = Payments(api: Client("https://pay.example.com"))
            }
            """, "requires that 'SystemTrust' conform to 'PinningTrust'"
        ),
        (
            """
            func missingFieldAsText(_ head: ResponseHead) -> String {
                head["Content-Type"]
            }
            """, "value of optional type 'String?' must be unwrapped to a value of type 'String'"
        ),
        (
            """
            func missingURL(_ request: inout Request) {
                request.url = nil
            }
            """, "'nil' cannot be assigned to type 'String'"
        ),
        (
            """
            func valueOfAnotherType(_ transfer: Transfer<Int>) async throws -> String {
                try await transfer.value
            }
            """, "cannot convert return expression of type 'Int' to return type 'String'"
        ),
    ]

    private static let start = """
        import Curlew
        struct User: Codable, Sendable { var id: Int }
        struct Opaque: Sendable {}
        struct Payments<Trust: PinningTrust> { let api: Client<JSON, JSON, Trust> }
        func right(_ api: JSONClient, _ id: Int) async throws {
            let user: User = try await api.get("users/\\(id)")
            try await api.post("users", .encoding(user))
        }

        """

    @Test(
        .enabled("no compiler can read the module") { try await TypeCheck.errors("import Curlew")?.isEmpty == true })
    func compilerRejectsMistakesWithHelpfulMessages() async throws {
        var code = Self.start
        var expected: [Int: String] = [:]
        for (function, message) in Self.mistakes {
            expected[code.count { $0 == "\n" } + 2] = message
            code += function + "\n"
        }
        let problems = try await TypeCheck.errors(code)
        let errors = try #require(problems)
        for (line, message) in expected.sorted(by: { $0.key < $1.key }) {
            let said = errors.filter { $0.line == line }.map(\.message)
            #expect(said.contains { $0.contains(message) }, "\(message): \(said)")
        }
        let others = errors.filter { expected[$0.line] == nil }
        #expect(others.isEmpty, "\(others)")
    }
}

/// Runs the compiler on a program with the modules next to the test executable.
private enum TypeCheck {
    struct Problem: Sendable {
        var line: Int
        var message: String
    }

    /// Returns the compiler's errors for a program, or nil without a compiler or built modules.
    static func errors(_ code: String) async throws -> [Problem]? {
        guard let compiler = program("swiftc"), let search = searchPaths() else { return nil }
        let folder = FileManager.default.temporaryDirectory.path + "/curlew-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = "\(folder)/Program.swift"
        try Data(code.utf8).write(to: URL(filePath: file))
        let options = ["-typecheck", "-swift-version", "6", "-diagnostic-style", "llvm", "-no-color-diagnostics"]
        let command = [compiler] + options + ["-module-cache-path", folder] + search + [file]
        let script = command.map { "'\($0)'" }.joined(separator: " ") + " 2>&1; echo status: $?"
        let text = String(decoding: try await ShellCommand.output(script), as: UTF8.self)
        let problems = text.split(separator: "\n").compactMap(problem)
        // A failure without a location is no error in the program.
        return text.hasSuffix("status: 0\n") || !problems.isEmpty ? problems : nil
    }

    /// Parses a line of the compiler: file, line, column, "error" and message, separated by colons.
    private static func problem(_ line: Substring) -> Problem? {
        let parts = line.split(separator: ":", maxSplits: 4)
        guard parts.count == 5, parts[0].hasSuffix("/Program.swift"), parts[3] == " error" else { return nil }
        return Int(parts[1]).map { Problem(line: $0, message: String(parts[4].dropFirst())) }
    }

    private static func program(_ name: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private static func searchPaths() -> [String]? {
        guard let test = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            return nil
        }
        let products = URL(filePath: test).deletingLastPathComponent().path
        let sources =
            URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path + "/Sources"
        let map = "\(products)/CurlewShims.build/module.modulemap"
        let isBuilt = ["\(products)/Modules/Curlew.swiftmodule", map].allSatisfy(FileManager.default.fileExists)
        guard isBuilt else { return nil }
        let folders = ["\(products)/Modules", "\(sources)/CCurl", "\(sources)/COpenSSL"]
        return folders.flatMap { ["-I", $0] } + ["-Xcc", "-fmodule-map-file=\(map)"]
    }
}
