// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Journals of stored downloads: no file ends the process, and written records are read again unchanged.
///
/// The target reads the bytes as a file, and as the lines of a journal with valid checksums, to reach the records.
func examine(_ input: [UInt8]) {
    examineFile(input)
    let lines = input.split(separator: 0x0A).map { line in Array((sum(of: line) + " ").utf8) + line + [0x0A] }
    examineFile(Array((TransferJournal.header + "\n").utf8) + lines.joined())
}

private func examineFile(_ bytes: [UInt8]) {
    guard let replay = try? TransferJournal.Replay(bytes, "journal") else { return }
    demand(Set(replay.records.map(\.id)).count == replay.records.count, "two records have one id")
    for var record in replay.records {
        record.incrementAttempts()
        record.incrementRetries()
        _ = (record.description, record.request.description, record.place, record.isOver)
        demand(record.attempts > 0 && record.retries > 0, "a count is not positive")
        demand(record.bounded.bounded == record.bounded, "bounding a bounded record changes it")
    }
    let written = replay.records.map { record in
        let json = Array("{\"put\":".utf8) + ((try? JSONEncoder().encode(record)).map { [UInt8]($0) } ?? []) + [0x7D]
        return Array((sum(of: json) + " ").utf8) + json + [0x0A]
    }
    let again = try? TransferJournal.Replay(Array((TransferJournal.header + "\n").utf8) + written.joined(), "journal")
    demand(again?.records == replay.records, "the written records differ")
    demand(again?.isDamaged == false, "the written journal is damaged")
}

private func sum(of bytes: some Sequence<UInt8>) -> String {
    (MessageDigest.digest(.sha256, of: bytes) ?? []).prefix(8).hexadecimal
}
