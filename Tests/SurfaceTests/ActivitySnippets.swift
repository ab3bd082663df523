// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal

// Snippets about activity, word for word.

private struct Window: Sendable { func showIndicator(_ isActive: Bool) async {} }
private struct Photo: Decodable, Sendable { let id: Int }
private func countRows() async throws -> Int { 0 }

// Activity/ActivityMonitor.swift
func snippetOfActivity(_ session: Session) {
    let monitor = ActivityMonitor(for: session)
    monitor.perform(.spinner(label: "loading"))
}

// Activity/ActivityAction.swift
func snippetOfAction(_ monitor: ActivityMonitor) {
    let window = Window()
    monitor.perform(
        ActivityMonitor.Action { isActive in
            await window.showIndicator(isActive)
        })
}

// Activity/Refreshable.swift
func snippetOfRefreshable(_ client: Client<some RequestFormat, some ResponseFormat, some TrustEvaluator>) async throws {
    var photos: [Photo] = []
    let list = Refreshable()
    try await list.refresh {
        photos = try await client.get("photos")
    }
    print(photos)
}

// Documentation/Machine.md
func snippetOfMachine(_ session: Session) async {
    let monitor = ActivityMonitor(for: session)
    for await isActive in monitor {
        print(isActive ? "loading" : "idle")
    }
}

func snippetOfMachine(_ monitor: ActivityMonitor) async throws {
    let spinner = monitor.perform(.spinner(label: "loading"))
    monitor.perform(.serviceStatus(active: "loading", idle: "waiting"))
    let count = try await monitor.withActivity { try await countRows() }
    spinner.cancel()  // removes the spinner
    await spinner.value
    _ = count
}

func snippetOfRefreshing(_ client: Client<some RequestFormat, some ResponseFormat, some TrustEvaluator>) async throws {
    var photos: [Photo] = []
    let list = Refreshable()
    let didRefresh = try await list.refresh { photos = try await client.get("photos") }
    for await isRefreshing in list { print(isRefreshing) }
    print(didRefresh, photos)
}
