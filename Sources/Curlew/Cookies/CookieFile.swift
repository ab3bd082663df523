// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension CookieJar {
    /// The format of a jar's file.
    public enum FileFormat: String, Sendable, Hashable, Codable, CaseIterable {
        /// One line of seven fields for each cookie, as curl and wget read and write it. Versions of wget before 2
        /// ignore the lines of `isHTTPOnly` cookies.
        ///
        /// The format has no `SameSite`, no creation time, and no cookies with tabs, which stay in memory.
        case netscape
        /// A JSON array with one cookie on each line and all its properties, in Curlew's own format. The jar does not
        /// read the JSON exports of browsers.
        case json
    }

    /// A line without a valid cookie, or with one beyond the limits; the next save removes it from the file.
    public struct SkippedLine: Sendable, Hashable, CustomStringConvertible {
        /// The number of the line, from 1; in a JSON file with another layout, the number of the element.
        public let line: Int
        /// The reason, as the end of a sentence that begins with “line 7”; without text of the file.
        public let reason: String

        /// One line such as "line 7 has 3 fields instead of 7".
        public var description: String { "line \(line) \(reason)" }
    }
}

extension CookieJar.FileFormat {
    /// Whether the format can express a cookie.
    func canExpress(_ cookie: Cookie) -> Bool { self == .json || NetscapeLine(cookie: cookie) != nil }
}

/// The contents of a cookie file, parsed from bytes and written to bytes; a pure value.
struct CookieFile: Sendable {
    /// A cookie of a file.
    struct Record: Sendable, Equatable {
        var cookie: Cookie
        /// The time of the last change; nil if the format does not have it.
        var changed: Date?
    }

    /// The file is not a cookie file, so it must not be replaced.
    struct NotACookieFile: Error {}

    /// The maximum numbers of cookies and of reports; a jar keeps far fewer cookies.
    private static let (maximumRecords, maximumReports) = (20_000, 1000)
    /// The starts of the first lines that curl and Python, wget, and old versions of wget write.
    private static let headers = ["# netscape http cookie file", "# http cookie file"]

    private(set) var records: [Record] = []
    /// The positions of the records that were read, and their lines.
    private var places: [Cookie.Key: (position: Int, line: Int)] = [:]
    private let suffixes: PublicSuffixes?
    private(set) var skipped: [CookieJar.SkippedLine] = []

    init(_ records: [Record]) { (self.records, suffixes) = (records, nil) }

    /// Parses a file; damaged lines are skipped.
    ///
    /// - Parameters:
    ///   - bytes: The contents; empty contents are a file without cookies.
    ///   - suffixes: The public suffixes; nil, the default, if they are unknown.
    ///   - now: The present time; cookies that have expired are left out.
    /// - Throws: `NotACookieFile` for contents that are not empty and have neither a cookie nor the first line of a
    ///   cookie file.
    init(
        _ bytes: [UInt8], _ format: CookieJar.FileFormat, suffixes: PublicSuffixes? = nil, now: Date
    ) throws(NotACookieFile) {
        self.suffixes = suffixes
        switch format {
        case .netscape: try readLines(bytes, now)
        case .json: try readJSON(bytes, now)
        }
        records.removeAll { $0.cookie.isExpired(at: now) }
    }

    /// Returns the bytes of the file.
    func bytes(_ format: CookieJar.FileFormat) -> [UInt8] {
        switch format {
        case .netscape:
            let lines = records.compactMap { NetscapeLine(cookie: $0.cookie)?.text }
            return Array(
                (["# Netscape HTTP Cookie File", "# Written by Curlew."] + lines + [""]).joined(separator: "\n").utf8)
        case .json:
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let lines = records.compactMap { try? encoder.encode(JSONRecord($0)) }
            return Array("[\n".utf8) + lines.joined(separator: Array(",\n".utf8)) + Array("\n]\n".utf8)
        }
    }

    private static func lines(of bytes: [UInt8]) -> [(number: Int, bytes: ArraySlice<UInt8>)] {
        var bytes = bytes[...]
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        return bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated().map { number, line in
            (number + 1, line.last == 0x0D ? line.dropLast() : line)
        }
    }

    private mutating func skip(_ line: Int, _ reason: String) {
        if skipped.count < Self.maximumReports { skipped.append(CookieJar.SkippedLine(line: line, reason: reason)) }
    }

    /// Reports the lines of cookies that the jar has evicted at once.
    mutating func skipEvicted(_ cookies: [Cookie]) {
        for line in cookies.compactMap({ places[$0.key]?.line }).sorted() {
            skip(line, "is beyond the limits of a jar")
        }
    }

    /// Adds a cookie if the rules allow it.
    private mutating func add(_ cookie: Cookie, changed: Date?, line: Int, _ now: Date) {
        do throws(Cookie.Refusal.Reason) {
            try CookieRules.checkMade(cookie, suffixes)
        } catch {
            return skip(line, "is not a valid cookie (\(error.rawValue))")
        }
        // A change in the future, by a clock that was wrong, must not win over all later changes.
        let changed = changed.map { $0 > now ? .distantPast : $0 }
        let record = Record(cookie: cookie.limited(at: now), changed: changed)
        // The last record of a cookie counts, even if it has expired.
        if let place = places[cookie.key] {
            records[place.position] = record
            places[cookie.key]?.line = line
        } else if records.count < Self.maximumRecords {
            places[cookie.key] = (records.count, line)
            records.append(record)
        } else {
            skip(line, "is beyond the first \(Self.maximumRecords) cookies")
        }
    }

    // MARK: Netscape

    private mutating func readLines(_ bytes: [UInt8], _ now: Date) throws(NotACookieFile) {
        var (isRecognised, isEmpty) = (false, true)
        for (number, line) in Self.lines(of: bytes) where !line.allSatisfy(\.isLinearSpace) {
            let text = HeaderFields.text(line)
            isEmpty = false
            if text.hasPrefix("#"), !text.hasPrefix(NetscapeLine.httpOnly) {
                isRecognised = isRecognised || Self.headers.contains { text.lowercased().hasPrefix($0) }
                continue
            }
            do throws(NetscapeLine.Flaw) {
                // Earlier lines get earlier creation times.
                let created = now.addingTimeInterval(Double(number) * 1e-6)
                add(try NetscapeLine(text).cookie(created: created), changed: nil, line: number, now)
                isRecognised = true
            } catch {
                skip(number, error.text)
            }
        }
        guard isRecognised || isEmpty else { throw NotACookieFile() }
    }

    // MARK: JSON

    private mutating func readJSON(_ bytes: [UInt8], _ now: Date) throws(NotACookieFile) {
        let decoder = JSONDecoder()
        var damaged: [Int] = []
        var isRecognised = false
        for (number, line) in Self.lines(of: bytes) {
            let line = line.trimmingPrefix { $0.isLinearSpace }
            if line.isEmpty || line.elementsEqual("[".utf8) || line.elementsEqual("]".utf8) { continue }
            let object = line.last == UInt8(ascii: ",") ? line.dropLast() : line
            guard let record = try? decoder.decode(JSONRecord.self, from: Data(object)) else {
                damaged.append(number)
                // Most likely the file has another layout.
                if !isRecognised, damaged.count > Self.maximumReports { break }
                continue
            }
            isRecognised = true
            add(record.cookie(now), changed: record.changedDate, line: number, now)
        }
        if damaged.isEmpty { return }
        if isRecognised {
            for number in damaged { skip(number, "is not a JSON object of a cookie") }
            return
        }
        // The file may have been written with another layout.
        guard let elements = try? decoder.decode([Element].self, from: Data(bytes)),
            elements.isEmpty || elements.contains(where: { $0.record != nil })
        else { throw NotACookieFile() }
        for (index, element) in elements.enumerated() {
            guard let record = element.record else {
                skip(index + 1, "is not a JSON object of a cookie")
                continue
            }
            add(record.cookie(now), changed: record.changedDate, line: index + 1, now)
        }
    }

    /// An element of an array, which may be damaged.
    private struct Element: Decodable {
        let record: JSONRecord?

        init(from decoder: any Decoder) throws { record = try? JSONRecord(from: decoder) }
    }
}

/// A line of the Netscape format.
private struct NetscapeLine {
    struct Flaw: Error {
        let text: String
    }

    /// The start of a line whose cookie is hidden from scripts.
    static let httpOnly = "#HttpOnly_"

    var domain: String
    var includesSubdomains: Bool
    var path: String
    var isSecure: Bool
    /// Seconds since 1970; 0 for a session cookie.
    var expires: Int64
    var name: String
    var value: String
    var isHTTPOnly: Bool

    init(_ text: String) throws(Flaw) {
        isHTTPOnly = text.hasPrefix(Self.httpOnly)
        let line = isHTTPOnly ? text.dropFirst(Self.httpOnly.count) : text[...]
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        // Some programs leave out an empty value together with its tab.
        guard fields.count == 7 || fields.count == 6 else {
            throw Flaw(text: "has \(fields.count) fields instead of 7")
        }
        guard let includesSubdomains = Self.flag(fields[1]), let isSecure = Self.flag(fields[3]) else {
            throw Flaw(text: "has a flag other than TRUE and FALSE")
        }
        // Some programs write a fraction, and Python leaves the expiry of session cookies empty.
        guard let expires = fields[4].isEmpty ? 0 : Int64(fields[4].prefix { $0 != "." }) else {
            throw Flaw(text: "has an invalid expiry")
        }
        domain = Self.domain(fields[0])
        self.includesSubdomains = includesSubdomains
        path = fields[2]
        self.isSecure = isSecure
        self.expires = expires
        name = fields[5]
        value = fields.count == 7 ? fields[6] : ""
    }

    /// Creates the line of a cookie; nil for a cookie that the format cannot express.
    init?(cookie: Cookie) {
        let texts = [cookie.name, cookie.value, cookie.path]
        guard texts.allSatisfy({ !$0.utf8.contains(0x09) }) else { return nil }
        domain = cookie.domain
        includesSubdomains = !cookie.isHostOnly
        path = cookie.path
        isSecure = cookie.isSecure
        expires = cookie.expires.map { max(1, Int64($0.timeIntervalSince1970.rounded(.up))) } ?? 0
        (name, value) = (cookie.name, cookie.value)
        isHTTPOnly = cookie.isHTTPOnly
    }

    /// Returns a domain without the dot at its start, and without the port that wget adds.
    private static func domain(_ text: String) -> String {
        let text = text.hasPrefix(".") ? text.dropFirst() : text[...]
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        return String(parts.count == 2 && UInt16(parts[1]) != nil ? parts[0] : text)
    }

    private static func flag(_ text: String) -> Bool? {
        switch text.uppercased() {
        case "TRUE": true
        case "FALSE": false
        default: nil
        }
    }

    private static func flag(_ value: Bool) -> String { value ? "TRUE" : "FALSE" }

    var text: String {
        let host = (isHTTPOnly ? Self.httpOnly : "") + (includesSubdomains ? "." : "") + domain
        return [
            host, Self.flag(includesSubdomains), path, Self.flag(isSecure), "\(expires)", name, value,
        ].joined(separator: "\t")
    }

    func cookie(created: Date) -> Cookie {
        // Some programs write a negative expiry for session cookies.
        let expiry = expires <= 0 ? nil : Date(timeIntervalSince1970: Double(expires))
        // Some programs write TRUE for an IP address or a single label, which have no subdomains.
        let isHostOnly = !includesSubdomains || HostName.isAddress(domain) || !domain.utf8.contains(UInt8(ascii: "."))
        return Cookie(
            name: name, value: value, domain: CookieRules.domainKey(domain) ?? domain, isHostOnly: isHostOnly,
            path: path.utf8.first == UInt8(ascii: "/") ? path : "/", isSecure: isSecure, isHTTPOnly: isHTTPOnly,
            sameSite: nil, expires: expiry, created: created)
    }
}

/// A cookie as a JSON object; its expiry is in seconds since 1970.
private struct JSONRecord: Codable {
    var name: String
    var value: String
    var domain: String
    var hostOnly: Bool
    var path: String
    var secure: Bool
    var httpOnly: Bool
    var sameSite: Cookie.SameSite?
    var expires: Double?
    /// Microseconds since 1970, which files of other programs do not have.
    var created: Int64
    var changed: Int64

    init(_ record: CookieFile.Record) {
        let cookie = record.cookie
        (name, value, domain) = (cookie.name, cookie.value, cookie.domain)
        (hostOnly, path) = (cookie.isHostOnly, cookie.path)
        (secure, httpOnly, sameSite) = (cookie.isSecure, cookie.isHTTPOnly, cookie.sameSite)
        expires = cookie.expires?.timeIntervalSince1970
        created = cookie.created.microseconds
        changed = (record.changed ?? cookie.created).microseconds
    }

    var changedDate: Date { Date(microseconds: changed) }

    func cookie(_ now: Date) -> Cookie {
        Cookie(
            name: name, value: value, domain: CookieRules.domainKey(domain) ?? domain, isHostOnly: hostOnly, path: path,
            isSecure: secure, isHTTPOnly: httpOnly, sameSite: sameSite,
            expires: expires.map { Date(timeIntervalSince1970: $0) },
            created: min(Date(microseconds: created), now))
    }
}
