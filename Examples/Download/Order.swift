// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal

/// The options and URLs of the command line.
struct Order: Sendable {
    /// The reason why the program does not download anything.
    struct Refusal: Error {
        let description: String
        let status: Int32
    }

    static let usage = """
        usage: Download [--dir DIRECTORY] [--json | --quiet] [--at-most NUMBER] [--sha256 HEX] URL...

        Downloads files, NUMBER of them at once (4 unless given). What is interrupted, by Ctrl-C or by anything else,
        leaves a part, and the same command gets the rest of it. --json writes a JSON object on a line for each change.
        Without URLs it shows all that with a server of its own.
        """

    var urls: [String] = []
    var directory = "."
    var form = TerminalProgress.Form.automatic
    var atMost = 4
    var checksum: Checksum?
    /// Whether a download continues on a new connection after its connection breaks.
    var retries = true

    init(_ arguments: some Sequence<String>) throws(Refusal) {
        var rest = Array(arguments)[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": throw Refusal(description: Self.usage, status: 0)
            case "--json": form = .json
            case "--quiet": form = .silent
            case "--dir": directory = try Self.value(of: argument, &rest) { $0 }
            case "--at-most": atMost = try Self.value(of: argument, &rest) { Int($0).flatMap { $0 > 0 ? $0 : nil } }
            case "--sha256": checksum = try Self.value(of: argument, &rest) { Self.digest($0) }
            case _ where argument.hasPrefix("-"):
                throw Refusal(description: "\(argument) is not an option.\n\(Self.usage)", status: 64)
            default: urls.append(argument)
            }
        }
        if checksum != nil, urls.count > 1 {
            throw Refusal(description: "--sha256 works with a single URL only.", status: 64)
        }
    }

    private static func digest(_ text: String) -> Checksum? {
        let isDigest = text.count == 64 && text.allSatisfy { $0.isHexDigit && $0.isASCII }
        return isDigest ? .sha256(text) : nil
    }

    private static func value<Value>(
        of option: String, _ rest: inout ArraySlice<String>, _ read: (String) -> Value?
    ) throws(Refusal) -> Value {
        guard let text = rest.popFirst(), let value = read(text) else {
            throw Refusal(description: "\(option) needs a valid value.\n\(usage)", status: 64)
        }
        return value
    }
}
