// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension HeaderName {
    /// `Accept` (RFC 9110 §12.5.1).
    public static let accept = HeaderName("Accept")
    /// `Accept-Charset` (RFC 9110 §12.5.2).
    public static let acceptCharset = HeaderName("Accept-Charset")
    /// `Accept-Encoding` (RFC 9110 §12.5.3).
    public static let acceptEncoding = HeaderName("Accept-Encoding")
    /// `Accept-Language` (RFC 9110 §12.5.4).
    public static let acceptLanguage = HeaderName("Accept-Language")
    /// `Accept-Ranges` (RFC 9110 §14.3).
    public static let acceptRanges = HeaderName("Accept-Ranges")
    /// `Access-Control-Allow-Origin` (Fetch §3.3.3).
    public static let accessControlAllowOrigin = HeaderName("Access-Control-Allow-Origin")
    /// `Age` (RFC 9111 §5.1).
    public static let age = HeaderName("Age")
    /// `Allow` (RFC 9110 §10.2.1).
    public static let allow = HeaderName("Allow")
    /// `Alt-Svc` (RFC 7838 §3).
    public static let altSvc = HeaderName("Alt-Svc")
    /// `Authorization` (RFC 9110 §11.6.2).
    public static let authorization = HeaderName("Authorization")
    /// `Cache-Control` (RFC 9111 §5.2).
    public static let cacheControl = HeaderName("Cache-Control")
    /// `Connection` (RFC 9110 §7.6.1).
    public static let connection = HeaderName("Connection")
    /// `Content-Disposition` (RFC 6266).
    public static let contentDisposition = HeaderName("Content-Disposition")
    /// `Content-Encoding` (RFC 9110 §8.4).
    public static let contentEncoding = HeaderName("Content-Encoding")
    /// `Content-Language` (RFC 9110 §8.5).
    public static let contentLanguage = HeaderName("Content-Language")
    /// `Content-Length` (RFC 9110 §8.6).
    public static let contentLength = HeaderName("Content-Length")
    /// `Content-Location` (RFC 9110 §8.7).
    public static let contentLocation = HeaderName("Content-Location")
    /// `Content-Range` (RFC 9110 §14.4).
    public static let contentRange = HeaderName("Content-Range")
    /// `Content-Type` (RFC 9110 §8.3).
    public static let contentType = HeaderName("Content-Type")
    /// `Cookie` (RFC 6265 §4.2).
    public static let cookie = HeaderName("Cookie")
    /// `Date` (RFC 9110 §6.6.1).
    public static let date = HeaderName("Date")
    /// `ETag` (RFC 9110 §8.8.3).
    public static let etag = HeaderName("ETag")
    /// `Expect` (RFC 9110 §10.1.1).
    public static let expect = HeaderName("Expect")
    /// `Expires` (RFC 9111 §5.3).
    public static let expires = HeaderName("Expires")
    /// `Host` (RFC 9110 §7.2).
    public static let host = HeaderName("Host")
    /// `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
    public static let idempotencyKey = HeaderName("Idempotency-Key")
    /// `If-Match` (RFC 9110 §13.1.1).
    public static let ifMatch = HeaderName("If-Match")
    /// `If-Modified-Since` (RFC 9110 §13.1.3).
    public static let ifModifiedSince = HeaderName("If-Modified-Since")
    /// `If-None-Match` (RFC 9110 §13.1.2).
    public static let ifNoneMatch = HeaderName("If-None-Match")
    /// `If-Range` (RFC 9110 §13.1.5).
    public static let ifRange = HeaderName("If-Range")
    /// `If-Unmodified-Since` (RFC 9110 §13.1.4).
    public static let ifUnmodifiedSince = HeaderName("If-Unmodified-Since")
    /// `Last-Event-ID` (HTML §9.2.4).
    public static let lastEventID = HeaderName("Last-Event-ID")
    /// `Last-Modified` (RFC 9110 §8.8.2).
    public static let lastModified = HeaderName("Last-Modified")
    /// `Link` (RFC 8288 §3).
    public static let link = HeaderName("Link")
    /// `Location` (RFC 9110 §10.2.2).
    public static let location = HeaderName("Location")
    /// `Origin` (RFC 6454 §7).
    public static let origin = HeaderName("Origin")
    /// `Proxy-Authenticate` (RFC 9110 §11.7.1).
    public static let proxyAuthenticate = HeaderName("Proxy-Authenticate")
    /// `Priority` (RFC 9218 §5).
    public static let priority = HeaderName("Priority")
    /// `Proxy-Authorization` (RFC 9110 §11.7.2).
    public static let proxyAuthorization = HeaderName("Proxy-Authorization")
    /// `Range` (RFC 9110 §14.2).
    public static let range = HeaderName("Range")
    /// `Referer` (RFC 9110 §10.1.3).
    public static let referer = HeaderName("Referer")
    /// `Retry-After` (RFC 9110 §10.2.3).
    public static let retryAfter = HeaderName("Retry-After")
    /// `Server` (RFC 9110 §10.2.4).
    public static let server = HeaderName("Server")
    /// `Set-Cookie` (RFC 6265 §4.1).
    public static let setCookie = HeaderName("Set-Cookie")
    /// `Strict-Transport-Security` (RFC 6797 §6.1).
    public static let strictTransportSecurity = HeaderName("Strict-Transport-Security")
    /// `Trailer` (RFC 9110 §6.6.2).
    public static let trailer = HeaderName("Trailer")
    /// `Transfer-Encoding` (RFC 9112 §6.1).
    public static let transferEncoding = HeaderName("Transfer-Encoding")
    /// `Upgrade` (RFC 9110 §7.8).
    public static let upgrade = HeaderName("Upgrade")
    /// `User-Agent` (RFC 9110 §10.1.5).
    public static let userAgent = HeaderName("User-Agent")
    /// `Vary` (RFC 9110 §12.5.5).
    public static let vary = HeaderName("Vary")
    /// `Via` (RFC 9110 §7.6.3).
    public static let via = HeaderName("Via")
    /// `WWW-Authenticate` (RFC 9110 §11.6.1).
    public static let wwwAuthenticate = HeaderName("WWW-Authenticate")
}
