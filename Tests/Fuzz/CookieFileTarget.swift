// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Files of cookies and HSTS hosts: what is read is valid, and is written and read again unchanged.
func examine(_ input: [UInt8]) {
    let now = Date(timeIntervalSince1970: 1_767_225_600)
    for format in CookieJar.FileFormat.allCases {
        guard let file = try? CookieFile(input, format, now: now) else { continue }
        for line in file.skipped { demand(line.line > 0, "the line is \(line.line)") }
        for record in file.records {
            demand((try? CookieRules.checkMade(record.cookie, nil)) != nil, "an invalid cookie is read")
            demand(!record.cookie.isExpired(at: now), "an expired cookie is read")
        }
        let written = file.records.filter { format.canExpress($0.cookie) }
        let again = try? CookieFile(CookieFile(written).bytes(format), format, now: now)
        demand(again?.records.map(\.cookie.key) == written.map(\.cookie.key), "the written file differs")
        demand(again?.records.map(\.cookie.value) == written.map(\.cookie.value), "the written values differ")
        demand(again?.skipped.isEmpty == true, "a written line is skipped")
    }
    if let hosts = HSTSFile.hosts(input, now: now) {
        demand(HSTSFile.hosts(HSTSFile.bytes(hosts), now: now) == hosts, "the written hosts differ")
    }
}
