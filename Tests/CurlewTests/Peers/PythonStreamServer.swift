// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// A server with Python's standard library that sends streams in chunks of random sizes, each flushed.
struct PythonStreamServer: PeerServer {
    /// Returns the server that the tests share.
    static func shared() throws -> PythonStreamServer { try sharedResult.get() }
    private static let sharedResult = Result { try PythonStreamServer() }

    let instance: PeerInstance

    init() throws {
        instance = try PeerInstance(.python3, [.plain], hasLargeFile: false, mark: "ready") {
            executable, folder, ports in
            let script = "\(folder)/server.py"
            try Data(Self.script.utf8).write(to: URL(filePath: script))
            return [executable, "-B", "-u", script, "\(ports[.plain] ?? 0)", folder]
        }
    }

    /// Returns a client with this server's base URL.
    func client(_ session: Session = Session()) throws -> JSONClient {
        Client(try BaseURL(url("/")), session: session)
    }

    /// A script that numbers its events; each connection sends up to five events and breaks off in the next one.
    private static let script = #"""
        import http.server, json, os, random, sys
        from urllib.parse import parse_qs, urlsplit

        def event(number, end):
            lines = [f"id: {number}", f"event: tick", f'data: {{"number": {number},', f'data:"text": "é漢👴🏻 {number}"}}']
            return end.join(([": still here"] if number % 2 else []) + lines) + end + end

        def record(number): return {"number": number, "text": "é漢👴🏻 \n\u001e " * (number % 4)}

        class Streams(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass

            def stream(self, kind, body, seed):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                chance, rest = random.Random(seed), body
                while rest:
                    piece, rest = rest[:(size := chance.choice([1, 2, 3, 7, 50]))], rest[size:]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def do_GET(self):
                target = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(target.query).items()}
                seed = int(query.get("seed", 0))
                if target.path == "/events": self.events(int(query["count"]), query["end"])
                elif target.path == "/ndjson":
                    body = "".join(json.dumps(record(number), ensure_ascii=number % 2 == 0) + "\n" for number in range(200))
                    self.stream("application/x-ndjson", body.encode(), seed)
                elif target.path == "/json-seq":
                    body = "".join("\x1e" + json.dumps(record(number), indent=number % 3) + "\n" for number in range(200))
                    self.stream("application/json-seq", body.encode(), seed)

            def do_POST(self):
                body = b""
                while size := int(self.rfile.readline(), 16): body += self.rfile.read(size) + self.rfile.readline()[:0]
                self.rfile.readline()
                numbers = [json.loads(line)["number"] for line in body.splitlines()]
                answer = json.dumps({"type": self.headers["Content-Type"], "numbers": numbers}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def events(self, count, end):
                ends = {"lf": "\n", "cr": "\r", "crlf": "\r\n"}
                first = int(self.headers.get("Last-Event-ID", 0)) + 1
                if first > count:
                    self.send_response(204)
                    return self.end_headers()
                text = "retry: 1" + ends[end] + "".join(event(n, ends[end]) for n in range(first, min(first + 5, count + 1)))
                self.stream("text/event-stream", text.encode() + "data: lost é".encode(), first)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Streams)
        print("ready")
        log = os.open(sys.argv[2] + "/error.log", os.O_WRONLY | os.O_CREAT)
        for descriptor in 1, 2: os.dup2(log, descriptor)
        server.serve_forever()

        """#
}
