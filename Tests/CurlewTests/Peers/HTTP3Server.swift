// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A server of aioquic, which speaks HTTP/3 only and returns the method, the path and the body of requests.
struct HTTP3Server: PeerServer {
    let instance: PeerInstance

    init() throws {
        instance = try PeerInstance(.aioquic, [.secure], hasLargeFile: false, mark: "ready") {
            executable, folder, ports in
            let script = "\(folder)/server.py"
            try Data(Self.script.utf8).write(to: URL(filePath: script))
            return [executable, "-B", "-u", script, Peer.http3Folder, "\(ports[.secure] ?? 0)", folder]
        }
    }

    /// Returns the lines of the server's log: "METHOD path connection-number".
    func requests() throws -> [String] {
        let log = try String(contentsOf: URL(filePath: "\(instance.folder)/requests.log"), encoding: .utf8)
        return log.split(separator: "\n").map(String.init)
    }

    private static let script = #"""
        import asyncio, itertools, sys
        sys.path.insert(0, sys.argv[1])
        from aioquic.asyncio import QuicConnectionProtocol, serve
        from aioquic.h3.connection import H3_ALPN, H3Connection
        from aioquic.h3.events import DataReceived, HeadersReceived
        from aioquic.quic.configuration import QuicConfiguration
        from aioquic.quic.events import ProtocolNegotiated

        port, folder = int(sys.argv[2]), sys.argv[3]
        numbers = itertools.count(1)
        log = open(folder + "/requests.log", "a", buffering=1)

        class Server(QuicConnectionProtocol):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                self.http, self.requests, self.number = None, {}, next(numbers)

            def quic_event_received(self, event):
                if isinstance(event, ProtocolNegotiated): self.http = H3Connection(self._quic)
                if self.http is None: return
                for part in self.http.handle_event(event):
                    request = self.requests.setdefault(part.stream_id, {"fields": {}, "body": b""})
                    if isinstance(part, HeadersReceived): request["fields"].update(part.headers)
                    if isinstance(part, DataReceived): request["body"] += part.data
                    if part.stream_ended: self.respond(part.stream_id, self.requests.pop(part.stream_id))

            def respond(self, stream, request):
                method, path = (request["fields"][name].decode() for name in (b":method", b":path"))
                log.write(f"{method} {path} {self.number}\n")
                body = f"{method} {path} ".encode() + request["body"]
                if path.startswith("/size/"): body = b"x" * int(path[6:])
                fields = [(b":status", b"200"), (b"content-type", b"text/plain")]
                if path != "/unknown-length": fields.append((b"content-length", str(len(body)).encode()))
                self.http.send_headers(stream, fields)
                self.http.send_data(stream, body, end_stream=True)
                self.transmit()

        async def main():
            configuration = QuicConfiguration(
                is_client=False, alpn_protocols=H3_ALPN, max_data=1 << 24, max_stream_data=1 << 24)
            configuration.load_cert_chain(folder + "/chain.pem", folder + "/key.pem")
            await serve("127.0.0.1", port, configuration=configuration, create_protocol=Server)
            print("ready")
            await asyncio.Event().wait()

        asyncio.run(main())

        """#
}
