// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

/// Stores of many downloads: eight times as many records cause about eight times the work.
@Suite(.timeLimit(.minutes(5)))
struct StoreSizeTests {
    private let folder: Folder
    private let server: MockServer
    // The default is too short on a busy machine.
    private let session = Session { $0.timeouts.connect = .seconds(100) }
    private let gate = Gate()

    init() throws {
        folder = try Folder()
        server = try MockServer { [gate] _ in .status(200).fault(.stall(gate), at: .start) }
    }

    /// Opens, reattaches, reads and closes a store; returns how many records it visited.
    private func visits(of count: Int) async throws -> Int {
        let path = folder("\(count)")
        let journal = try await DiskThread.syncing.result { () throws(DiskFailure) in try TransferJournal(in: path) }
        var last: TransferJournal.LineNumber?
        for number in 0..<count {
            var record = try TransferStore.Download(
                Request(server.url("/\(number)")), to: .file(folder("file \(number)")), overwrite: .fail,
                expecting: nil,
                options: DownloadOptions(), userInfo: [:])
            if number % 2 == 1 { record.state = .failed }
            last = journal.put(record)
        }
        try await journal.waitUntilWritten(#require(last))
        await journal.close()

        let store = try await TransferStore(at: path, queue: DownloadOptions.Queue(atMost: 1))
        for _ in 0..<2 {
            #expect(await store.reattach(session).count == count / 2, "\(store.downloads.compactMap(\.failure))")
        }
        #expect(await gate.waitUntilReached())
        var reported = 0
        for await report in store.reports {
            guard case .failed = report else { break }
            reported += 1
            if reported == count / 2 { break }
        }
        await store.close()
        #expect(store.downloads.count <= count / 2 + 1)
        return store.journal.visits
    }

    @Test func storeWorkGrowsLinearlyWithItsRecords() async throws {
        let few = try await visits(of: 250)
        let many = try await visits(of: 2000)
        #expect(few >= 250 && many <= few * 10, "\(few), \(many)")
    }

    // MARK: The queue

    /// Passes so many downloads through a queue; returns how often it read the state of a run.
    private func visits(of count: Int, in order: DownloadOptions.Queue.Order) async throws -> Int {
        let missing = try MockServer { _ in .status(404) }
        var options = DownloadOptions()
        let queue = DownloadOptions.Queue(atMost: 1, order: order)
        options.queue = queue
        let transfers = (0..<count).map { number in
            session.downloadTransfer(
                Request(missing.url("/\(number)")), to: .file(folder("queued \(number)")), options: options
            ).start()
        }
        for transfer in transfers { _ = try? await transfer.value }
        #expect(queue.running == 0 && queue.waiting == 0 && missing.requestCount == count)
        return queue.visits
    }

    @Test(arguments: DownloadOptions.Queue.Order.allCases)
    func queueWorkGrowsLinearlyWithItsDownloads(_ order: DownloadOptions.Queue.Order) async throws {
        let few = try await visits(of: 50, in: order)
        let many = try await visits(of: 400, in: order)
        #expect(few >= 50 && many <= few * 10, "\(few), \(many)")
    }

    // MARK: The table

    private func record(_ number: Int) throws -> TransferStore.Download {
        try TransferStore.Download(
            Request("https://example.com/\(number)"), to: .file("/\(number)"), overwrite: .fail, expecting: nil,
            options: DownloadOptions(), userInfo: [:])
    }

    /// After random operations, the table equals an array that is searched.
    @Test func recordTableEqualsASearchedArray() throws {
        var chance = SeededChance(11)
        var (table, model) = (RecordTable([]), [TransferStore.Download]())
        for number in 0..<2000 {
            let index = model.isEmpty ? nil : Int(chance.next() % UInt64(model.count))
            switch (chance.next() % 4, index) {
            case (0, let index?):
                table.remove(model[index].id)
                model.remove(at: index)
            case (1, let index?):
                model[index].state = model[index].isOver ? .waiting : .failed
                table.put(model[index])
            default:
                try model.append(record(number))
                table.put(model[model.count - 1])
            }
            let known = Set(model.prefix(3).map(\.id))
            #expect(table.firstOver(except: known) == model.first { $0.isOver && !known.contains($0.id) })
            #expect(table.count == model.count)
            if let index, index < model.count { #expect(table.find(model[index].id) == model[index]) }
        }
        #expect(table.all() == model && table.find("unknown") == nil)
        table.remove("unknown")
        #expect(RecordTable(model).slots(from: 0, atMost: 5) == Array(model.prefix(5)))
    }
}
