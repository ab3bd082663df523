// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The shortest useful program: GET a URL, decode its JSON, print what it says.
//     swift run GetJSON https://example.com/users/42

import Curlew
import FoundationEssentials

@main
struct GetJSON {
    static func main() async throws {
        let url = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8080/hello.json"
        do {
            let (data, head) = try await Session.shared.data(for: Request(url))
            let values = try JSONDecoder().decode([String: String].self, from: data)
            print(head.status, values)
        } catch let error as NetworkError {
            print(error.detailedDescription)
        }
    }
}
