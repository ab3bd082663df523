// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension MediaSource {
    /// Writes the record of the stored bytes, after these are synced.
    func save() async {
        while true {
            let count = saved.count
            let isBusy = state.withLock { state in
                defer { state.isSaving = true }
                return state.isSaving
            }
            if !isBusy { break }
            await saved.waitUncancelled(after: count)
        }
        if let (record, file, generation) = snapshot() {
            let isSaved = await store.save(record, of: key, file) { [self] in
                state.withLock { $0.plan.generation == generation }
            }
            // Another save tries again, unless the file was discarded.
            if !isSaved { state.withLock { $0.hasChanged = $0.plan.generation == generation || $0.hasChanged } }
        }
        state.withLock { $0.isSaving = false }
        saved.send()
    }

    /// Saves some time after the end of a transfer, so that many short ones cause few writes.
    func saveLater() {
        if isWorthSaving { delayedSave.schedule(self) }
        reportSize()
    }

    /// Tells the store how many bytes are stored, which may make it remove other files.
    func reportSize() {
        let (bytes, facts) = state.withLock { ($0.plan.cached.count, $0.facts) }
        if bytes > 0 { store.grew(key, to: bytes, facts) }
    }

    /// Whether the stored bytes have changed since the last save, and a later process can use them.
    var isWorthSaving: Bool {
        state.withLock { state in
            !state.plan.isShutDown && state.hasChanged && (state.plan.mode == .ranged || state.plan.isComplete)
        }
    }

    /// Returns the record of what is stored now; nil when nothing has changed since the last save.
    private func snapshot() -> (MediaRecord, PartialFile, UInt64)? {
        let usedAt = store.nextUse()
        store.touch(key, at: usedAt)
        return state.withLock { state in
            guard state.hasChanged, let facts = state.facts, let file = state.file else { return nil }
            state.hasChanged = false
            let record = MediaRecord(
                key: key, name: state.name, facts: facts, mode: state.plan.mode, intervals: state.plan.cached,
                usedAt: usedAt, confirmedAt: state.confirmedAt)
            return record.isUsable ? (record, file, state.plan.generation) : nil
        }
    }

    /// Closes the file after the last use; a file without a record, or that a later process cannot use, is removed.
    func close() {
        let name = state.withLock { state -> String? in
            defer { (state.file, state.facts) = (nil, nil) }
            guard let facts = state.facts else { return state.name.isEmpty ? nil : state.name }
            let record = MediaRecord(
                key: key, name: state.name, facts: facts, mode: state.plan.mode, intervals: state.plan.cached,
                usedAt: 0, confirmedAt: 0)
            return record.isUsable && store.record(key)?.name == state.name ? nil : state.name
        }
        if let name { store.discard(key, [name]) }
    }

    /// Asks the server whether the stored file is current, and discards it if not.
    ///
    /// A server that cannot be reached, or that does not answer the question, leaves the file as it is.
    func validate() async {
        guard let (facts, generation) = state.withLock({ state in state.facts.map { ($0, state.plan.generation) } })
        else { return }
        var asked = request
        asked.method = .head
        asked.fields[.acceptEncoding] = "identity"
        asked.options.decompression = .off
        asked.options.coalesces = false
        asked.tags[OwnStore.self] = true
        switch facts.validator {
        case .tag(let tag)?: asked.fields[.ifNoneMatch] = tag
        case .lastModified(let date)?: asked.fields[.ifModifiedSince] = date
        case nil: return update { state in ((), state.plan.changed(keeping: nil)) }
        }
        guard let head = try? await session.transfer(asked).response().head else { return }
        let isSame = head.status == .notModified || head.status.isSuccess && facts.matches(MediaFacts(whole: head))
        let isOther = head.status.isSuccess || head.status == .notFound || head.status == .gone
        let time = Int64(Date().timeIntervalSince1970)
        update { state in
            guard state.plan.generation == generation, isSame || isOther else { return ((), []) }
            if isSame {
                (state.confirmedAt, state.hasChanged) = (time, true)
                return ((), [])
            }
            return ((), state.plan.changed(keeping: nil))
        }
    }
}

extension MediaSource {
    /// Stops all transfers and fails the readers that wait, because the cache is closed.
    func shutDown() async {
        let error = closed()
        let waiters = update { state in
            defer { (state.readers, state.factsWaiters) = ([:], [:]) }
            return (Array(state.readers.values) + Array(state.factsWaiters.values), state.plan.shutDown())
        }
        for waiter in waiters { waiter.resume(returning: error) }
        await save()
    }
}
