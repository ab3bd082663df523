// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// An nghttpd process, which supports HTTP/2 only, with static files and an echo of uploads.
struct NghttpdServer: PeerServer {
    /// Returns the server that the tests share, one for https and one for http.
    static func shared(_ route: PeerRoute) throws -> NghttpdServer {
        try (route.isSecure ? sharedSecure : sharedPlain).get()
    }
    private static let sharedSecure = Result { try NghttpdServer(.http2, hasLargeFile: true) }
    private static let sharedPlain = Result { try NghttpdServer(.priorKnowledge, hasLargeFile: true) }

    let instance: PeerInstance

    /// Starts a server for a route.
    ///
    /// - Parameter options: Further command-line options.
    init(
        _ route: PeerRoute, streams: Int = 256, hasLargeFile: Bool = false,
        options: [String] = ["--echo-upload", "--trailer=checksum: none"]
    ) throws {
        let listener: PeerListener = route.isSecure ? .secure : .priorKnowledge
        instance = try PeerInstance(.nghttpd, [listener], hasLargeFile: hasLargeFile, mark: "listen") {
            executable, folder, ports in
            var command = ["/bin/sh", "-c", Self.script, "nghttpd", folder, executable, "-v", "-a", "127.0.0.1"]
            command += ["-d", "\(folder)/files", "-m", "\(streams)"] + options + (route.isSecure ? [] : ["--no-tls"])
            command += ["\(ports[listener] ?? 0)"]
            return command + (route.isSecure ? ["\(folder)/key.pem", "\(folder)/chain.pem"] : [])
        }
    }

    /// A script that passes the verbose output on until nghttpd listens, and writes the rest to a file.
    private static let script = """
        mkfifo "$1/log"
        { sed -u /listen/q; exec cat > "$1/frames.log"; } < "$1/log" &
        log=$1/log; shift
        exec "$@" > "$log" 2>&1
        """

    /// Returns the number of connections in the log of frames.
    func countConnections() throws -> Int {
        let log = try String(contentsOf: URL(filePath: "\(instance.folder)/frames.log"), encoding: .utf8)
        return Set(log.split(separator: "\n").filter { $0.hasPrefix("[id=") }.map { $0.prefix { $0 != "]" } }).count
    }
}
