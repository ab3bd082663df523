// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// curlew-jar is a process for tests in which several processes share one cookie file: it sets cookies and saves the
// file after each forty of them.

import Curlew
import Glibc

@main
struct Jar {
    /// The arguments are FILE, FORMAT, NAME and COUNT: the cookies are for the hosts NAME0.test, NAME1.test, ….
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let format = CookieJar.FileFormat(rawValue: arguments[2]),
            let count = Int(arguments[4])
        else {
            print("usage: curlew-jar FILE FORMAT NAME COUNT")
            exit(2)
        }
        let jar = try await CookieJar(file: arguments[1], format: format)
        for number in 0..<count {
            try jar.set(Cookie("c\(number)", "\(number)", host: "\(arguments[3])\(number / 100).test"))
            if number % 40 == 39 { try await jar.save() }
        }
    }
}
