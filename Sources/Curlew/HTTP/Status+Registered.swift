// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Status {
    /// The phrases of the IANA registry of HTTP status codes; 306 and 418 are registered as unused and have no phrase.
    static let phrases: [Int: String] = [
        100: "Continue",
        101: "Switching Protocols",
        102: "Processing",
        103: "Early Hints",
        200: "OK",
        201: "Created",
        202: "Accepted",
        203: "Non-Authoritative Information",
        204: "No Content",
        205: "Reset Content",
        206: "Partial Content",
        207: "Multi-Status",
        208: "Already Reported",
        226: "IM Used",
        300: "Multiple Choices",
        301: "Moved Permanently",
        302: "Found",
        303: "See Other",
        304: "Not Modified",
        305: "Use Proxy",
        307: "Temporary Redirect",
        308: "Permanent Redirect",
        400: "Bad Request",
        401: "Unauthorized",
        402: "Payment Required",
        403: "Forbidden",
        404: "Not Found",
        405: "Method Not Allowed",
        406: "Not Acceptable",
        407: "Proxy Authentication Required",
        408: "Request Timeout",
        409: "Conflict",
        410: "Gone",
        411: "Length Required",
        412: "Precondition Failed",
        413: "Content Too Large",
        414: "URI Too Long",
        415: "Unsupported Media Type",
        416: "Range Not Satisfiable",
        417: "Expectation Failed",
        421: "Misdirected Request",
        422: "Unprocessable Content",
        423: "Locked",
        424: "Failed Dependency",
        425: "Too Early",
        426: "Upgrade Required",
        428: "Precondition Required",
        429: "Too Many Requests",
        431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons",
        500: "Internal Server Error",
        501: "Not Implemented",
        502: "Bad Gateway",
        503: "Service Unavailable",
        504: "Gateway Timeout",
        505: "HTTP Version Not Supported",
        506: "Variant Also Negotiates",
        507: "Insufficient Storage",
        508: "Loop Detected",
        510: "Not Extended",
        511: "Network Authentication Required",
    ]
}

extension Status {
    /// 100 Continue.
    public static let `continue` = Status(100)
    /// 101 Switching Protocols.
    public static let switchingProtocols = Status(101)
    /// 103 Early Hints.
    public static let earlyHints = Status(103)
    /// 200 OK.
    public static let ok = Status(200)
    /// 201 Created.
    public static let created = Status(201)
    /// 202 Accepted.
    public static let accepted = Status(202)
    /// 203 Non-Authoritative Information.
    public static let nonAuthoritativeInformation = Status(203)
    /// 204 No Content.
    public static let noContent = Status(204)
    /// 205 Reset Content.
    public static let resetContent = Status(205)
    /// 206 Partial Content.
    public static let partialContent = Status(206)
    /// 207 Multi-Status.
    public static let multiStatus = Status(207)
    /// 300 Multiple Choices.
    public static let multipleChoices = Status(300)
    /// 301 Moved Permanently.
    public static let movedPermanently = Status(301)
    /// 302 Found.
    public static let found = Status(302)
    /// 303 See Other.
    public static let seeOther = Status(303)
    /// 304 Not Modified.
    public static let notModified = Status(304)
    /// 307 Temporary Redirect.
    public static let temporaryRedirect = Status(307)
    /// 308 Permanent Redirect.
    public static let permanentRedirect = Status(308)
    /// 400 Bad Request.
    public static let badRequest = Status(400)
    /// 401 Unauthorized.
    public static let unauthorized = Status(401)
    /// 403 Forbidden.
    public static let forbidden = Status(403)
    /// 404 Not Found.
    public static let notFound = Status(404)
    /// 405 Method Not Allowed.
    public static let methodNotAllowed = Status(405)
    /// 406 Not Acceptable.
    public static let notAcceptable = Status(406)
    /// 407 Proxy Authentication Required.
    public static let proxyAuthenticationRequired = Status(407)
    /// 408 Request Timeout.
    public static let requestTimeout = Status(408)
    /// 409 Conflict.
    public static let conflict = Status(409)
    /// 410 Gone.
    public static let gone = Status(410)
    /// 411 Length Required.
    public static let lengthRequired = Status(411)
    /// 412 Precondition Failed.
    public static let preconditionFailed = Status(412)
    /// 413 Content Too Large.
    public static let contentTooLarge = Status(413)
    /// 414 URI Too Long.
    public static let uriTooLong = Status(414)
    /// 415 Unsupported Media Type.
    public static let unsupportedMediaType = Status(415)
    /// 416 Range Not Satisfiable.
    public static let rangeNotSatisfiable = Status(416)
    /// 417 Expectation Failed.
    public static let expectationFailed = Status(417)
    /// 421 Misdirected Request.
    public static let misdirectedRequest = Status(421)
    /// 422 Unprocessable Content.
    public static let unprocessableContent = Status(422)
    /// 423 Locked.
    public static let locked = Status(423)
    /// 425 Too Early.
    public static let tooEarly = Status(425)
    /// 426 Upgrade Required.
    public static let upgradeRequired = Status(426)
    /// 428 Precondition Required.
    public static let preconditionRequired = Status(428)
    /// 429 Too Many Requests.
    public static let tooManyRequests = Status(429)
    /// 431 Request Header Fields Too Large.
    public static let requestHeaderFieldsTooLarge = Status(431)
    /// 451 Unavailable For Legal Reasons.
    public static let unavailableForLegalReasons = Status(451)
    /// 500 Internal Server Error.
    public static let internalServerError = Status(500)
    /// 501 Not Implemented.
    public static let notImplemented = Status(501)
    /// 502 Bad Gateway.
    public static let badGateway = Status(502)
    /// 503 Service Unavailable.
    public static let serviceUnavailable = Status(503)
    /// 504 Gateway Timeout.
    public static let gatewayTimeout = Status(504)
    /// 505 HTTP Version Not Supported.
    public static let httpVersionNotSupported = Status(505)
    /// 507 Insufficient Storage.
    public static let insufficientStorage = Status(507)
    /// 511 Network Authentication Required.
    public static let networkAuthenticationRequired = Status(511)
}
