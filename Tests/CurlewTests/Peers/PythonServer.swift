// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A server with Python's standard library only, which parses forms with the mail parser and returns their contents.
struct PythonServer: PeerServer {
    /// Returns the server that the tests share.
    static func shared() throws -> PythonServer { try sharedResult.get() }
    private static let sharedResult = Result { try PythonServer() }

    let instance: PeerInstance

    init() throws {
        instance = try PeerInstance(.python3, [.plain], hasLargeFile: false, mark: "ready") {
            executable, folder, ports in
            let script = "\(folder)/server.py"
            try Data(Self.script.utf8).write(to: URL(filePath: script))
            return [executable, "-B", "-u", script, "\(ports[.plain] ?? 0)", folder]
        }
    }

    /// A script that decodes chunked bodies itself, because the standard library does not, and UTF-8 names of parts.
    private static let script = #"""
        import email.message, email.parser, email.policy, hashlib, json, os, sys
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        def parameter(part, name):
            # The mail parser does not support UTF-8 in fields, so the field is decoded here and parsed again.
            field = dict(part.raw_items())["Content-Disposition"].encode("ascii", "surrogateescape").decode()
            again = email.message.Message()
            again["Content-Disposition"] = field
            return again.get_param(name, header="Content-Disposition")

        def reading(part):
            body = part.get_payload(decode=True)
            return {
                "name": parameter(part, "name"), "filename": parameter(part, "filename"),
                "type": part.get("Content-Type"), "length": len(body), "sha256": hashlib.sha256(body).hexdigest(),
                "text": body.decode("utf-8", "replace") if len(body) < 1000 else None,
            }

        class Server(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    assert self.rfile.readline() == b"\r\n"
                assert self.rfile.readline() == b"\r\n"
                return body

            def do_POST(self):
                head = b"Content-Type: " + self.headers["Content-Type"].encode("latin-1") + b"\r\n\r\n"
                message = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(head + self.body())
                defects = [type(found).__name__ for part in message.walk() for found in part.defects]
                answer = json.dumps({
                    "defects": defects, "parts": [reading(part) for part in message.get_payload()],
                    "length": self.headers.get("Content-Length"),
                }).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments): pass

        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Server)
        print("ready")
        log = os.open(sys.argv[2] + "/error.log", os.O_WRONLY | os.O_CREAT)
        for descriptor in 1, 2: os.dup2(log, descriptor)
        server.serve_forever()

        """#
}

/// The contents of a form as parsed by a server.
struct FormReading: Decodable, Sendable {
    struct Part: Decodable, Sendable {
        var name: String?
        var filename: String?
        var type: String?
        var length: Int
        var sha256: String
        /// The text of the part if it is shorter than 1000 bytes.
        var text: String?
    }

    var parts: [Part]
    var defects: [String]?
    /// The `Content-Length` of the request.
    var length: String?
}
