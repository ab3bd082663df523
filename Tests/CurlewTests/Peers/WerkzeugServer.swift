// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// A Werkzeug server that returns the parsed request, or the given body in another encoding.
struct WerkzeugServer: PeerServer {
    /// Returns the server that the tests share.
    static func shared() throws -> WerkzeugServer { try sharedResult.get() }
    private static let sharedResult = Result { try WerkzeugServer() }

    let instance: PeerInstance

    init() throws {
        instance = try PeerInstance(.werkzeug, [.plain], hasLargeFile: false, mark: "ready") {
            executable, folder, ports in
            let script = "\(folder)/server.py"
            try Data(Self.script.utf8).write(to: URL(filePath: script))
            return [executable, "-B", "-u", script, "\(ports[.plain] ?? 0)", folder]
        }
    }

    /// Returns a client with this server's base URL.
    func client(_ session: Session = Session()) throws -> JSONClient {
        Client(try BaseURL(url("/api")), session: session)
    }

    /// The script of the server; its output goes to a file once it is ready.
    private static let script = #"""
        import base64, datetime, hashlib, json, os, plistlib, sys
        from urllib.parse import unquote
        from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData
        from werkzeug.serving import WSGIRequestHandler, make_server
        from werkzeug.wrappers import Request, Response

        def credential(request):
            read, field = request.authorization, request.headers.get("Authorization")
            if read is not None and read.type == "basic":
                return {"type": read.type, "user": read.username, "password": read.password}
            # Older versions of Werkzeug do not parse tokens.
            scheme, _, token = (field or "").partition(" ")
            return {"type": scheme.lower(), "token": token} if field else None

        def weighted(list):
            return [{"value": value, "quality": quality} for value, quality in list]

        def plain(value):
            if isinstance(value, bytes): return base64.b64encode(value).decode()
            if isinstance(value, datetime.datetime): return value.isoformat()
            if isinstance(value, dict): return {name: plain(member) for name, member in value.items()}
            if isinstance(value, list): return [plain(element) for element in value]
            return value

        def reading(request):
            body = request.get_data(cache=True)
            target = request.environ["REQUEST_URI"]
            return {
                "method": request.method,
                "path": request.path,
                "segments": [unquote(part, errors="strict") for part in target.split("?")[0].split("/")[1:]],
                "query": list(request.args.items(multi=True)),
                "form": list(request.form.items(multi=True)),
                "json": request.get_json() if request.is_json else None,
                "plist": plain(plistlib.loads(body)) if request.mimetype == "application/x-plist" else None,
                "type": request.mimetype,
                "typeParameters": dict(request.mimetype_params),
                "length": request.content_length,
                "body": base64.b64encode(body).decode(),
                "accept": weighted(request.accept_mimetypes),
                "languages": weighted(request.accept_languages),
                "credential": credential(request),
                "fields": {name.lower(): value for name, value in request.headers.items()},
            }

        def parts(request):
            # Parts in the order of the body, which Werkzeug's separate forms and files do not keep.
            found, decoder = [], MultipartDecoder(request.mimetype_params["boundary"].encode())
            for chunk in request.stream.read(), None:
                decoder.receive_data(chunk)
                while not isinstance(event := decoder.next_event(), (NeedData, Epilogue)):
                    if isinstance(event, (Field, File)): found.append([event, b""])
                    elif isinstance(event, Data): found[-1][1] += event.data
            return {"length": request.headers.get("Content-Length"), "parts": [{
                "name": event.name, "filename": getattr(event, "filename", None), "type": event.headers.get("Content-Type"),
                "length": len(body), "sha256": hashlib.sha256(body).hexdigest(),
                "text": body.decode("utf-8", "replace") if len(body) < 1000 else None,
            } for event, body in found]}

        def text(request, mark):
            codec, charset = request.args["codec"], request.args.get("charset")
            kind = request.args["type"] + (f"; charset={charset}" if charset else "")
            body = request.get_data().decode()
            if "json" in kind: body = json.dumps(json.loads(body), ensure_ascii=False)
            return Response((mark + body).encode(codec), content_type=kind)

        def plist(request):
            layout = plistlib.FMT_BINARY if request.args["layout"] == "binary" else plistlib.FMT_XML
            return Response(plistlib.dumps(plistlib.loads(request.get_data()), fmt=layout), mimetype="application/x-plist")

        def problem(request):
            body = json.dumps(request.get_json())
            return Response(body, int(request.args["status"]), mimetype="application/problem+json")

        def cookies(request):
            response = Response(json.dumps(dict(request.cookies)), mimetype="application/json")
            if request.method == "POST":
                for cookie in request.get_json():
                    response.set_cookie(
                        cookie["name"], cookie["value"], path=cookie["path"], max_age=cookie.get("maxAge"),
                        httponly=cookie["httponly"], samesite=cookie.get("samesite"))
            if request.method == "DELETE":
                for name in request.cookies: response.delete_cookie(name, path="/")
            return response

        @Request.application
        def application(request):
            if request.path == "/parts": response = Response(json.dumps(parts(request)), mimetype="application/json")
            elif request.path == "/api/text": response = text(request, "\ufeff" if request.args.get("mark") == "1" else "")
            elif request.path.startswith("/api/cookies"): response = cookies(request)
            elif request.path == "/api/plist": response = plist(request)
            elif request.path == "/api/problem": response = problem(request)
            else: response = Response(json.dumps(reading(request)), mimetype="application/json")
            response.headers["Peer-Method"] = request.method
            return response

        class Silent(WSGIRequestHandler):
            def log(self, *arguments): pass

        server = make_server("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=Silent)
        print("ready")
        log = os.open(sys.argv[2] + "/error.log", os.O_WRONLY | os.O_CREAT)
        for descriptor in 1, 2: os.dup2(log, descriptor)
        server.serve_forever()

        """#
}

/// A request as parsed by Werkzeug.
struct WerkzeugReading: Decodable, Sendable {
    struct Weighted: Decodable, Sendable, Hashable {
        var value: String
        var quality: Double
    }

    struct Credentials: Decodable, Sendable, Hashable {
        var type: String
        var user: String?
        var password: String?
        var token: String?
    }

    var method: String
    /// The path, decoded as a whole.
    var path: String
    /// The segments of the request's target, each decoded separately.
    var segments: [String]
    var query: [[String]]
    var form: [[String]]
    var json: JSONValue?
    /// Data in Base64, dates by ISO 8601.
    var plist: JSONValue?
    var type: String
    var typeParameters: [String: String]
    var length: Int?
    var body: Data
    var accept: [Weighted]
    var languages: [Weighted]
    var credential: Credentials?
    /// The fields by their names in lower case.
    var fields: [String: String]
}
