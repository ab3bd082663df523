// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The benchmark client that uses Curlew through its public API.

import Curlew
import FoundationEssentials
import Measuring

@main
struct CurlewBench {
    static func main() {
        raiseFileLimit()
        let job = Job(Array(CommandLine.arguments.dropFirst()))
        runBlocking {
            let cache = try await makeCache(job)
            let sessions = try (0..<job.sessions).map { _ in try makeSession(job, cache) }
            for session in sessions { try fillJar(session, job) }
            if let session = sessions.first { try await fillCache(job, session) }
            let start = cache?.statistics
            let meter = Meter()
            let outcome = try await run(job, sessions)
            if let cache, let start { verify(cache, since: start, job, outcome) }
            meter.finish(outcome.latencies, requests: outcome.requests, bytes: outcome.bytes)
        }
    }

    static func makeSession(_ job: Job, _ cache: HTTPCache?) throws -> Session {
        let configuration = try Session.Configuration {
            $0.limits.connectionsPerHost = max(64, job.connections)
            $0.limits.connections = max(512, job.connections)
            $0.limits.transfersPerHost = max(512, job.concurrency)
            $0.limits.responseBody = .mebibytes(256)
            $0.http.version = job.isHTTP2 ? .automatic : .http1Only
            if let url = job.proxy { $0.proxy = .always(try Proxy(url)) }
            if job.retries { $0.retry = .standard }
            if job.reloads { $0.cachePolicy = .reload }
        }
        guard let authority = job.authority else { return Session(configuration, cache: cache) }
        return try Session(configuration, trust: CustomRoots(pem: text(of: authority)), cache: cache)
    }

    /// Gives the session's jar cookies for the server, or for another host.
    static func fillJar(_ session: Session, _ job: Job) throws {
        for number in 0..<job.cookies { try session.cookies?.set(field: "name\(number)=value\(number)", from: job.url) }
        for number in 0..<job.otherCookies {
            try session.cookies?.set(Cookie("name\(number)", "value", host: "other.test"))
        }
    }

    /// Runs the whole job in every session at the same time.
    static func run(_ job: Job, _ sessions: [Session]) async throws -> Outcome {
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for session in sessions {
                group.addTask {
                    guard job.prefersExecutor else { return try await work(job, session) }
                    return try await withTaskExecutorPreference(session.executor) { try await work(job, session) }
                }
            }
            return try await group.reduce(into: Outcome()) { $0.add($1) }
        }
    }

    static func work(_ job: Job, _ session: Session) async throws -> Outcome {
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for worker in 0..<job.concurrency {
                let count = job.share(of: worker)
                group.addTask { try await repeated(count, job, session) }
            }
            return try await group.reduce(into: Outcome()) { $0.add($1) }
        }
    }

    static func repeated(_ count: Int, _ job: Job, _ session: Session) async throws -> Outcome {
        var outcome = Outcome()
        var request = Request(job.url)
        if job.givenCookies > 0 {
            let pairs = (0..<job.givenCookies).map { "name\($0)=value\($0)" }
            request.fields["Cookie"] = pairs.joined(separator: "; ")
        }
        if let path = job.unixSocket { request.options.unixSocket = path }
        let orders = job.isDecoded ? try Orders(job, session) : nil
        let file = job.reads.map { URL(filePath: $0, directoryHint: .notDirectory) }
        for _ in 0..<count {
            let began = now()
            let bytes =
                if let file {
                    try read(file, job)
                } else if let orders {
                    try await orders.decoded(request)
                } else if let form = job.form {
                    try await send(form, job, session)
                } else if job.upload != nil {
                    try await upload(job, session)
                } else if let path = job.download {
                    try await download(request, to: path, job, session)
                } else if job.isStreamed {
                    try await download(request, job, session)
                } else if job.hasTransfers {
                    try await value(of: request, job, session)
                } else {
                    try await collect(request, job, session)
                }
            outcome.latencies.add(now() - began)
            outcome.requests += 1
            outcome.bytes += bytes
        }
        return outcome
    }

    /// Collects the response in memory.
    ///
    /// A separate function, as in a program with one kind of work: the frame of a function for all kinds of work would
    /// count as memory in flight.
    @inline(never)
    static func collect(_ request: Request, _ job: Job, _ session: Session) async throws -> Int {
        let (data, head) = try await session.data(for: request)
        job.verify(status: head.status.code, bytes: data.count)
        return data.count
    }

    /// Reads a file in one piece.
    @inline(never)
    static func read(_ file: URL, _ job: Job) throws -> Int {
        let data = try Data(contentsOf: file)
        job.verify(status: 200, bytes: data.count)
        return data.count
    }

    /// Collects the response in memory, through a transfer.
    @inline(never)
    static func value(of request: Request, _ job: Job, _ session: Session) async throws -> Int {
        let data = try await session.transfer(request).value
        job.verify(status: 200, bytes: data.count)
        return data.count
    }
}

/// The results of a worker.
struct Outcome: Sendable {
    var latencies = Histogram()
    var requests = 0
    var bytes = 0

    mutating func add(_ other: Outcome) {
        latencies.add(other.latencies)
        requests += other.requests
        bytes += other.bytes
    }
}
