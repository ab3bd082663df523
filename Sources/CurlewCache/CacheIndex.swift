// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import FoundationEssentials

/// The index of a store: the entries, their order of use, and their total size, in a SQLite database.
///
/// Other processes may use the same database. One thread at a time uses an index.
final class CacheIndex {
    static let fileName = "index.sqlite"
    private static let version: Int64 = 1

    private let database: Database

    /// Opens the index of a directory, whose file exists; no other process opens or creates it at the same time.
    ///
    /// - Parameter fill: Adds entries to an index whose tables were made, in the same transaction.
    init(
        _ directory: PrivateDirectory, fill: (CacheIndex) throws(Database.Failure) -> Void
    ) throws(Database.Failure) {
        database = try Database(directory.path(of: Self.fileName))
        try database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY")
        var version: Int64 = 0
        try database.run("PRAGMA user_version") { version = $0.integer(0) }
        if version == Self.version { return }
        try database.transaction { () throws(Database.Failure) in
            try database.execute(Self.schema)
            try fill(self)
        }
    }

    private static let schema = """
        DROP TABLE IF EXISTS labels;
        DROP TABLE IF EXISTS totals;
        DROP TABLE IF EXISTS entries;
        CREATE TABLE entries (
            id INTEGER PRIMARY KEY, key TEXT NOT NULL, origin TEXT NOT NULL, bytes INTEGER NOT NULL,
            used INTEGER NOT NULL, data BLOB NOT NULL
        );
        CREATE INDEX entriesByKey ON entries (key);
        CREATE INDEX entriesByOrigin ON entries (origin);
        CREATE INDEX entriesByUse ON entries (used);
        CREATE TABLE labels (label TEXT NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (label, entry)) WITHOUT ROWID;
        CREATE INDEX labelsByEntry ON labels (entry);
        CREATE TABLE totals (count INTEGER NOT NULL, bytes INTEGER NOT NULL);
        INSERT INTO totals VALUES (0, 0);
        CREATE TRIGGER entryAdded AFTER INSERT ON entries BEGIN
            UPDATE totals SET count = count + 1, bytes = bytes + NEW.bytes;
        END;
        CREATE TRIGGER entryChanged AFTER UPDATE OF bytes ON entries BEGIN
            UPDATE totals SET bytes = bytes + NEW.bytes - OLD.bytes;
        END;
        CREATE TRIGGER entryRemoved AFTER DELETE ON entries BEGIN
            UPDATE totals SET count = count - 1, bytes = bytes - OLD.bytes;
            DELETE FROM labels WHERE entry = OLD.id;
        END;
        PRAGMA user_version = 1;
        """

    // MARK: Entries

    /// Returns the entries of a selection; entries that cannot be decoded are left out.
    func entries(_ selection: HTTPCache.Selection) throws(Database.Failure) -> [HTTPCache.Entry] {
        let (condition, values) = Self.condition(for: selection)
        var entries: [HTTPCache.Entry] = []
        try database.run("SELECT data FROM entries" + condition, values) { row in
            if let entry = Self.decode(row.bytes(0)) { entries.append(entry) }
        }
        return entries
    }

    private static func condition(for selection: HTTPCache.Selection) -> (String, [Database.Value]) {
        let labelled = "id IN (SELECT entry FROM labels WHERE label = ?)"
        return switch selection {
        case .all: ("", [])
        case .key(let key): (" WHERE key = ?", [.text(key)])
        case .origin(let origin): (" WHERE origin = ?", [.text(origin)])
        case .group(let group, let origin): (" WHERE origin = ? AND \(labelled)", [.text(origin), .text("g:" + group)])
        case .tag(let tag): (" WHERE \(labelled)", [.text("t:" + tag)])
        case .dictionaries(let origin): (" WHERE \(labelled) ORDER BY used DESC LIMIT 256", [.text("d:" + origin)])
        }
    }

    static func encode(_ entry: HTTPCache.Entry) -> [UInt8] { (try? JSON().encode(entry)).map { Array($0) } ?? [] }

    static func decode(_ data: [UInt8]) -> HTTPCache.Entry? {
        try? JSON().decode(HTTPCache.Entry.self, from: Data(data))
    }

    /// Adds an entry, and removes the ones that it replaces and the least recently used ones above a limit.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - data: The encoded entry.
    ///   - size: The size of its file.
    ///   - uses: The times of the latest uses of entries.
    ///   - publish: Gives the file its final name, while no other process changes the index.
    /// - Returns: The ids of the removed entries.
    func add(
        _ entry: HTTPCache.Entry, _ data: [UInt8], size: Int64, replacing replaced: [Int64], limit: Int64,
        uses: [Int64: Int64], now: Int64, publish: () throws(Database.Failure) -> Void
    ) throws(Database.Failure) -> [Int64] {
        try database.transaction { () throws(Database.Failure) in
            var removed: [Int64] = []
            for id in replaced where try delete(id) { removed.append(id) }
            try insert(entry, data, size: size, used: now)
            try write(uses)
            removed += try evict(above: limit, except: Int64(entry.id))
            try publish()
            return removed
        }
    }

    /// Adds an entry of a file that has its final name already.
    func adopt(_ entry: HTTPCache.Entry, _ data: [UInt8], size: Int64, used: Int64) throws(Database.Failure) {
        try insert(entry, data, size: size, used: used)
    }

    private func insert(
        _ entry: HTTPCache.Entry, _ data: [UInt8], size: Int64, used: Int64
    ) throws(Database.Failure) {
        let id = Int64(entry.id)
        try database.run(
            "INSERT INTO entries (id, key, origin, bytes, used, data) VALUES (?, ?, ?, ?, ?, ?)",
            [
                .integer(id), .text(entry.key), .text(entry.origin), .integer(size + Int64(data.count)), .integer(used),
                .bytes(data),
            ])
        try insertLabels(of: entry)
    }

    private func insertLabels(of entry: HTTPCache.Entry) throws(Database.Failure) {
        let uses = entry.isDictionary ? ["d:" + entry.origin] : []
        for label in Set(entry.groups.map { "g:" + $0 } + entry.tags.map { "t:" + $0 } + uses) {
            try database.run(
                "INSERT OR IGNORE INTO labels VALUES (?, ?)", [.text(label), .integer(Int64(entry.id))])
        }
    }

    private func delete(_ id: Int64) throws(Database.Failure) -> Bool {
        try database.run("DELETE FROM entries WHERE id = ?", [.integer(id)])
        return database.changes > 0
    }

    /// Removes the least recently used entries until the rest is at most `limit` bytes; returns their ids.
    private func evict(above limit: Int64, except kept: Int64) throws(Database.Failure) -> [Int64] {
        var removed: [Int64] = []
        while try totals().bytes > limit {
            var oldest: [Int64] = []
            try database.run(
                "SELECT id FROM entries WHERE id != ? ORDER BY used LIMIT 16", [.integer(kept)]
            ) { oldest.append($0.integer(0)) }
            if oldest.isEmpty { break }
            for id in oldest where try totals().bytes > limit {
                _ = try delete(id)
                removed.append(id)
            }
        }
        return removed
    }

    /// Replaces the data of an entry; does nothing without such an entry.
    func update(_ entry: HTTPCache.Entry) throws(Database.Failure) {
        let (data, id) = (Self.encode(entry), Database.Value.integer(Int64(entry.id)))
        try database.transaction { () throws(Database.Failure) in
            try database.run(
                "UPDATE entries SET data = ?, bytes = bytes + ? - length(data) WHERE id = ?",
                [.bytes(data), .integer(Int64(data.count)), id])
            guard database.changes > 0 else { return }
            try database.run("DELETE FROM labels WHERE entry = ?", [id])
            try insertLabels(of: entry)
        }
    }

    /// Removes entries; returns the ids of those that were there.
    func remove(_ ids: [Int64]) throws(Database.Failure) -> [Int64] {
        try database.transaction { () throws(Database.Failure) in
            var removed: [Int64] = []
            for id in ids where try delete(id) { removed.append(id) }
            return removed
        }
    }

    func totals() throws(Database.Failure) -> (count: Int64, bytes: Int64) {
        var totals: (count: Int64, bytes: Int64) = (0, 0)
        try database.run("SELECT count, bytes FROM totals") { totals = ($0.integer(0), $0.integer(1)) }
        return totals
    }

    // MARK: Uses

    /// Writes the times of the latest uses of entries.
    func flush(_ uses: [Int64: Int64]) throws(Database.Failure) {
        try database.transaction { () throws(Database.Failure) in try write(uses) }
    }

    private func write(_ uses: [Int64: Int64]) throws(Database.Failure) {
        for (id, time) in uses {
            try database.run("UPDATE entries SET used = max(used, ?) WHERE id = ?", [.integer(time), .integer(id)])
        }
    }

    // MARK: Repair

    /// Runs a body with the ids of all entries, while no other process changes the index.
    func withIDs(_ body: (Set<Int64>) throws(Database.Failure) -> Void) throws(Database.Failure) {
        try database.transaction { () throws(Database.Failure) in
            var ids: Set<Int64> = []
            try database.run("SELECT id FROM entries") { ids.insert($0.integer(0)) }
            try body(ids)
        }
    }
}
