// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The shortest useful program: GET a URL, decode its JSON, print the result.
//     swift run GetJSON https://jsonplaceholder.typicode.com/users/1

import Curlew
import Glibc

struct User: Decodable {
    var id: Int
    var name: String
}

@main
struct GetJSON {
    static func main() async {
        let path = Path(raw: CommandLine.arguments.dropFirst().first ?? "users/1")
        do {
            let user: User = try await Client("https://jsonplaceholder.typicode.com").get(path)
            print(user)
        } catch {
            print(error.detailedDescription)
            exit(error.exitCode)
        }
    }
}
