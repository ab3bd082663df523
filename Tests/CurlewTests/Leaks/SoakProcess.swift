// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs the program `curlew-soak` from the directory of the test executable and decodes its report.
enum SoakProcess {
    static func run<Report: Decodable & Sendable>(
        _ arguments: [String], environment: [String: String] = [:], as type: Report.Type
    ) async throws -> Report {
        let output = try await output(arguments, environment)
        do {
            return try JSONDecoder().decode(Report.self, from: output)
        } catch {
            throw ChildProgram.Failed(description: "curlew-soak printed: \(String(decoding: output, as: UTF8.self))")
        }
    }

    private static func output(_ arguments: [String], _ environment: [String: String]) async throws -> Data {
        let end = try await ChildProgram.run("curlew-soak", arguments, environment: environment)
        guard end.status == 0 else {
            throw ChildProgram.Failed(description: "curlew-soak ended with \(end.status)")
        }
        return end.output
    }
}

/// Returns the number of digits of a file's length.
func lengthOfLength(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return "\(attributes[.size] as? Int ?? -1)".count
}
