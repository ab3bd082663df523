// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-cache` runs: requests to a local server through a cache, one line for each. The program
// never sleeps: a response with `max-age=0` is stale at once, and the server changes its responses. Stage.swift has the
// server and the output.

import Curlew
import CurlewCache
import CurlewTesting
import FoundationEssentials
import Glibc

exit(await tour())

/// Runs all steps; returns the status of the program.
private func tour() async -> Int32 {
    let directory = FileManager.default.temporaryDirectory.appending(path: "curlew-cached-\(getpid())").path
    var status: Int32 = 1
    do {
        var stage = try Stage()
        try await showRules(&stage)
        try await showStaleResponses(&stage)
        try await showCredentials(&stage)
        try await showChanges(&stage)
        try await showDisk(&stage, directory)
        status = stage.end()
    } catch {
        print("error:", error)
    }
    try? FileManager.default.removeItem(atPath: directory)
    return status
}

/// Freshness, validation, `Vary`, and a request that must not reach the network.
private func showRules(_ stage: inout Stage) async throws {
    print("A fresh response needs no server:")
    try await stage.show(stage.get("/logo"), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.get("/logo"), "curlew; hit")

    print("\nA stale response is validated; the server confirms it without sending the body again:")
    try await stage.show(stage.get("/news"), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.get("/news"), "curlew; fwd=stale; fwd-status=304; stored")

    print("\nA response that varies by language is stored for each language:")
    try await stage.show(stage.get("/hello", [.acceptLanguage: "en"]), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.get("/hello", [.acceptLanguage: "de"]), "curlew; fwd=vary-miss; stored")
    try await stage.show(stage.get("/hello", [.acceptLanguage: "en"]), "curlew; hit")

    print("\nWithout a stored response, .onlyIfCached sends nothing:")
    try await stage.show(
        stage.get("/never", options: .cache(.onlyIfCached)), "curlew; fwd=uri-miss; detail=only-if-cached", status: 504)
}

/// Stale responses that are used while the server is asked, or instead of an error (RFC 5861).
private func showStaleResponses(_ stage: inout Stage) async throws {
    print("\nstale-while-revalidate: the stored response at once, the new one from the next request on:")
    try await stage.show(stage.get("/weather"), "curlew; fwd=uri-miss; stored")
    let stores = stage.cache.statistics.stores
    try await stage.show(stage.get("/weather"), "curlew; hit; detail=revalidating")
    while stage.cache.statistics.stores == stores { await Task.yield() }
    try await stage.show(stage.get("/weather"), "curlew; hit")

    print("\nstale-if-error: the stored response instead of a 503:")
    try await stage.show(stage.get("/prices"), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.get("/prices"), "curlew; fwd=stale; fwd-status=503; detail=error")
}

/// Responses to requests with credentials.
private func showCredentials(_ stage: inout Stage) async throws {
    print("\nA response to a request with credentials is used only for the same credentials:")
    try await stage.show(stage.get("/account", [.authorization: "Bearer anna"]), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.get("/account", [.authorization: "Bearer anna"]), "curlew; hit")
    try await stage.show(
        stage.get("/account", [.authorization: "Bearer bob"]), "curlew; fwd=miss; stored; detail=credentials")
}

/// Responses that a request, a tag or a closure of the program changes.
private func showChanges(_ stage: inout Stage) async throws {
    print("\nA POST invalidates the stored response of its URL:")
    try await stage.show(stage.get("/notes"), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.post("/notes", "milk"), "curlew; fwd=method")
    try await stage.show(stage.get("/notes"), "curlew; fwd=uri-miss; stored")

    print("\nThe willStore closure makes an API without freshness cacheable for a minute, and adds a tag:")
    try await stage.show(stage.get("/users/7"), "curlew; fwd=uri-miss; stored")
    try await stage.show(stage.get("/users/7"), "curlew; hit")
    let removed = try await stage.cache.remove(tag: "users")
    stage.check("removed by its tag: \(removed) entry", removed == 1)
    try await stage.show(stage.get("/users/7"), "curlew; fwd=uri-miss; stored")
}

/// A store on the disk, which a second session reads.
private func showDisk(_ stage: inout Stage, _ directory: String) async throws {
    print("\nA cache on the disk survives its session:")
    let first = Session(cache: try await .disk(directory))
    try await stage.show(stage.get("/report"), "curlew; fwd=uri-miss; stored", by: first)
    try await first.shutdown()
    let second = Session(cache: try await .disk(directory))
    try await stage.show(stage.get("/report"), "curlew; hit", by: second)
    try await second.shutdown()
}
