// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// An nghttpd of our own, which speaks nothing but HTTP/2: static files, and an echo of what is uploaded.
struct NghttpdServer: PeerServer {
    /// The ones that tests share, by https and by http.
    static func shared(_ route: PeerRoute) throws -> NghttpdServer {
        try (route.isSecure ? sharedSecure : sharedPlain).get()
    }
    private static let sharedSecure = Result { try NghttpdServer(.http2, hasLargeFile: true) }
    private static let sharedPlain = Result { try NghttpdServer(.priorKnowledge, hasLargeFile: true) }

    let instance: PeerInstance

    /// Starts one for a route.
    ///
    /// - Parameter options: More of the command line.
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

    /// The program says that it listens when it says everything: that goes on to a file, so that nobody has to read on.
    private static let script = """
        mkfifo "$1/log"
        { sed -u /listen/q; exec cat > "$1/frames.log"; } < "$1/log" &
        log=$1/log; shift
        exec "$@" > "$log" 2>&1
        """

    /// How many connections there were, by the frames it has logged.
    func countConnections() throws -> Int {
        let log = try String(contentsOf: URL(filePath: "\(instance.folder)/frames.log"), encoding: .utf8)
        return Set(log.split(separator: "\n").filter { $0.hasPrefix("[id=") }.map { $0.prefix { $0 != "]" } }).count
    }
}
