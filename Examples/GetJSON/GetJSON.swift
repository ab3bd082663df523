// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The shortest useful program: GET a URL, decode its JSON, print what it says.
//     swift run GetJSON https://jsonplaceholder.typicode.com/users/1

import Curlew
import FoundationEssentials
import Glibc

struct User: Decodable {
    var id: Int
    var name: String
}

@main
struct GetJSON {
    static func main() async {
        let url = CommandLine.arguments.dropFirst().first ?? "https://jsonplaceholder.typicode.com/users/1"
        do {
            let (data, head) = try await Session.shared.data(for: Request(url))
            print(head.status)
            print(try JSONDecoder().decode(User.self, from: data))
        } catch {
            let failure = error as? NetworkError
            print(failure?.detailedDescription ?? "The answer is not the JSON of a user: \(error)")
            exit(failure?.exitCode ?? 65)
        }
    }
}
