// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// Snippets of the doc comments in Sources/Curlew, word for word; parameters provide the values that a snippet
// assumes.

private func offerRetry() {}
private func show(_ error: NetworkError) { print(error) }
private func show(_ text: String) { print(text) }

// Errors/NetworkError+Kind.swift
func snippetOfErrorKind(_ error: NetworkError) {
    switch error.kind {
    case .timedOut, .connectionLost: offerRetry()
    default: show(error)
    }
}

// Errors/NetworkError+RequestFlaw.swift
func snippetOfRequestFlaw(_ error: NetworkError) {
    if error.requestFlaw == .scheme { show("Write the address with https:// in front.") }
}

// Errors/NetworkError.swift
func snippetOfNetworkError(_ transfer: Transfer<Data>) async throws {
    do {
        for try await element in transfer.stream { print(element) }
    } catch NetworkError.Kind.timedOut {
        offerRetry()
    } catch let error as NetworkError {
        print(error.detailedDescription)  // a tree, without secrets
    }
}

// HTTP/ByteCount.swift
func snippetOfByteCount(_ configuration: inout Session.Configuration) {
    configuration.limits.responseBody = .mebibytes(8)
    print(ByteCount.bytes(1_572_864))  // 1.5 MiB
}

// HTTP/Decompression.swift
func snippetOfDecompression(_ request: inout Request) {
    request.options.decompression = .off  // the archive as it is stored
    request.options.compression = .gzip(above: .kibibytes(16))
}

// HTTP/HTTPVersion.swift
func snippetOfVersion(_ response: Response<Data>) {
    if response.head.version == .http2 { print("one connection for all") }
}

// HTTP/HeaderFields.swift
func snippetOfFields() {
    var fields: HeaderFields = ["Accept": "text/html", "X-Trace": "7"]
    fields[.accept] = "application/json"  // replaces every value
    fields.append(.accept, "text/plain")  // adds one
    print(fields[.accept] ?? "")  // application/json, text/plain
}

// HTTP/HeaderName.swift
func snippetOfHeaderName() {
    let trace: HeaderName = "X-Trace"
    print(trace == "x-trace")  // true
    print(trace.rawValue)  // X-Trace
}

// HTTP/Method.swift
func snippetOfMethod() -> Curlew.Method {
    let purge: Method = "PURGE"
    return purge
}

// HTTP/Status.swift
func snippetOfStatus(_ response: Response<Data>) {
    if response.status == .notFound || response.status == 410 { print("gone") }
}

// Reachability/NetworkPath.swift
func snippetOfPath() async {
    for await path in Session.shared.path where path.isSatisfied { break }
}

// Request/ExpectContinue.swift
func snippetOfExpectContinue(_ request: inout Request) {
    request.options.expectContinue = .never
}

// Request/RedirectPolicy.swift
func snippetOfRedirectPolicy(_ request: inout Request) -> Session {
    let session = Session(Session.Configuration { $0.redirects = .sameOrigin().withholding("X-Tenant") })
    request.options.redirects = .custom { $0.isDowngrade ? .stop : .follow }
    return session
}

// Request/Request+Options.swift
func snippetOfOptions(_ request: inout Request) {
    request.options.timeouts = Timeouts(total: .seconds(5))
    request.options.label = "search"
}

// Request/Request.swift
func snippetOfRequest() -> [Request] {
    var request = Request(.post, "https://api.example.com/photos", fields: [.accept: "application/json"])
    request.options.priority = .high
    let simple: Request = "https://example.com"
    return [request, simple]
}

// Request/Timeouts.swift
func snippetOfTimeouts(_ request: inout Request) {
    request.options.timeouts = Timeouts(connect: .seconds(3), total: .seconds(30))
}

// Request/Timeouts.swift
func snippetOfTimeoutMembers(_ request: inout Request) {
    request.options.timeouts.responseHead = nil
    request.options.timeouts.idle = nil
    request.options.timeouts.minimumRate = nil
}

// Response/Response.swift
func snippetOfResponse(_ transfer: Transfer<Data>) async throws {
    let response: Response<Data> = try await transfer.response()
    print(response.value.count, response.head.status, response.metrics)
}

// Response/RedirectHop.swift
func snippetOfRedirectHop(_ response: Response<Data>) {
    for hop in response.head.history { print(hop.head.status, hop.url) }
}

// Response/ResponseHead.swift
func snippetOfHead(_ head: ResponseHead) {
    guard head.status.isSuccess, head.contentType == "image/png" else { return }
}

// Response/Response+Text.swift
func snippetOfText(_ transfer: Transfer<Data>) async throws -> String {
    let page = try await transfer.response().text()
    return page
}

// Response/TextEncoding.swift
func snippetOfTextEncoding(_ data: Data) throws {
    let cyrillic = TextEncoding(label: "windows-1251") ?? .utf8
    print(try cyrillic.text(of: data, lossy: true))
}

// Session/Session.swift
func snippetOfSession() async throws -> Int {
    let (data, head) = try await Session.shared.data(for: "https://example.com/users/42")
    return data.count + head.status.rawValue
}

// Session/SessionConfiguration.swift
func snippetOfConfiguration() -> Session {
    let session = Session(Session.Configuration { $0.timeouts.connect = .seconds(3) })
    return session
}

/// A destination for bytes.
struct OpenFile {
    func write(contentsOf data: Data) throws { print(data.count) }
}

// Session/SessionConfiguration+TCP.swift
func snippetOfTCP(_ configuration: inout Session.Configuration) {
    configuration.tcp.keepAlive = .init(idle: .seconds(30))
    configuration.tcp.addressOrder = .roundRobin
}

// Transfer/Transfer.swift
func snippetOfTransfer(_ session: Session, _ file: OpenFile) async throws {
    let transfer = session.transfer("https://example.com/archive.tar")
    for try await element in transfer.stream {
        switch element {
        case .head(let head): print(head.status)
        case .progress(let progress): print(progress.fraction ?? 0)
        case .bytes(let chunk): try file.write(contentsOf: Data(chunk))
        default: break
        }
    }
}

// Transfer/TransferElement.swift
func snippetOfElement(_ transfer: Transfer<Data>, _ preload: ([String]) -> Void) async throws {
    for try await element in transfer.stream {
        switch element {
        case .informational(let hint): preload(hint.fields.values(for: "Link"))
        case .trailers(let fields): print(fields["Server-Timing"] ?? "")
        default: break
        }
    }
}

// Transfer/TransferMetrics.swift
func snippetOfMetrics(_ response: Response<Data>) {
    print(response.metrics)  // 84 ms total: connect 12 ms, secure 30 ms, wait 40 ms, receive 2 ms; …
}

/// A progress bar.
struct Bar {
    func set(_ fraction: Double?, rate: Double, left: Duration?) { print(fraction ?? 0, rate, left ?? .zero) }
}

// Transfer/TransferProgress.swift
func snippetOfProgress(_ transfer: Transfer<Data>, _ bar: Bar) async {
    for await progress in transfer.progress {
        bar.set(progress.fraction, rate: progress.bytesPerSecond, left: progress.timeRemaining)
    }
}

// Request/BandwidthLimit.swift
func snippetOfBandwidth(_ api: some APIClient, _ path: String) {
    let session = Session { $0.limits.bandwidth = Request.BandwidthLimit(download: .mebibytes(10)) }
    let backup = api.transfer(.put, "backup", .file(path), options: .bandwidth(upload: .mebibytes(1)))
    _ = (session, backup)
}

// Request/RetryPolicy.swift, Request/Backoff.swift and Interceptors/RetryInterceptor.swift
func snippetsOfRetries(_ api: JSONClient) async throws {
    struct Config: Decodable {}
    do {
        let session = Session { $0.retry = .standard }
        let config: Config = try await api.get("config", options: .retry(.never))
        _ = (session, config)
    }
    do {
        var policy = RetryPolicy.standard
        policy.backoff = RetryPolicy.Backoff(first: .milliseconds(200), longest: .seconds(5))
        _ = policy
    }
    do {
        let patient = api.with { $0.interceptors = [.retry(.upTo(5))] }
        _ = patient
    }
}

// Interceptors/RateLimitInterceptor.swift and Interceptors/CircuitBreaker.swift
func snippetsOfLimits() {
    do {
        let session = Session(interceptors: [.rateLimit(requests: 10, per: .seconds(1), burst: 5)])
        _ = session
    }
    do {
        let session = Session(interceptors: [.circuitBreaker(failures: 3, cooldown: .seconds(10))])
        _ = session
    }
}
