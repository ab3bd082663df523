// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Directives, structured fields, dates and heads of a cache, and the files of stored bodies: nothing crashes, and what
/// is written is read again unchanged.
func examine(_ input: [UInt8]) {
    let text = HeaderFields.text(input[...])
    let control = CacheControl(text)
    demand(CacheControl(control.description).withoutOthers == control.withoutOthers, "the directives change")
    examineStructure(text)
    if let date = HTTPDate(anyCase: text) {
        demand(HTTPDate(anyCase: date.description.lowercased()) == date, "a date changes")
    }
    examinePattern(text)
    let lines = text.split(separator: "\n").map(String.init)
    if lines.count > 1 { examineRules(lines) }
    examineFile(input)
}

extension CacheControl {
    fileprivate var withoutOthers: CacheControl {
        var copy = self
        copy.others = []
        return copy
    }
}

private func examineStructure(_ text: String) {
    if let strings = StructuredField.strings(text) {
        let written = strings.compactMap { StructuredField.serialized($0) }.joined(separator: ", ")
        demand(StructuredField.strings(written) == strings, "the strings change")
    }
    _ = StructuredField.dictionary(text)
    _ = NoVarySearch(of: ["No-Vary-Search": text])?.equates("https://a.test/?\(text)", "https://a.test/?b=1")
}

/// A path with a backslash before each byte is a pattern of itself.
private func examinePattern(_ text: String) {
    _ = DictionaryUse(of: [.useAsDictionary: text])
    guard let base = try? RequestTarget("https://a.test/x/y?z") else { return }
    let path = "/" + text.prefix { $0.isASCII && $0 != "?" && $0 != "#" }
    guard let target = try? RequestTarget("https://a.test" + path) else { return }
    _ = URLPattern(text, base: base)?.matches(target)
    let pattern = path.map { "\\\($0)" }.joined()
    guard pattern.utf8.count <= 256 else { return }
    demand(URLPattern(pattern, base: base)?.matches(target) == true, "a path does not match itself")
}

/// The first line has the directives of the request, the others are fields of the response.
private func examineRules(_ lines: [String]) {
    let start = Date(timeIntervalSince1970: 1_767_225_600)
    let fields = HeaderFields(
        lines.dropFirst().compactMap { line in
            line.firstIndex(of: ":").map {
                HeaderFields.Field(
                    name: HeaderName(String(line[..<$0])), value: String(line[line.index(after: $0)...]).trimmingSpace)
            }
        })
    let request = CacheRequest(.get, "https://a.test/", fields: [.cacheControl: lines[0]])
    for rules in [CacheRules(), CacheRules(isShared: true, targetedFields: ["CDN-Cache-Control"])] {
        let head = ResponseHead(status: .ok, fields: fields, url: "https://a.test/")
        if rules.refusal(of: head, to: request, .none) != nil { continue }
        let stored = rules.storedFields(fields)
        var entry = HTTPCache.Entry(
            key: "https://a.test/", url: "https://a.test/", head: head, fields: stored,
            requestFields: CacheRules.requestFields(of: request, for: stored), requestedAt: start, receivedAt: start)
        entry.size = 10
        demand(rules.matches(entry, request), "a response does not match its own request")
        let freshness = rules.freshness(of: entry, at: start)
        demand(freshness.lifetime >= 0 && freshness.age >= 0, "a time is negative")
        for age in [0.0, 10, 1e6] {
            if case .serve(_, let report) = rules.decide(request, [entry], at: start.addingTimeInterval(age)) {
                demand(report.reason != nil || !request.directives.noCache, "no-cache is ignored")
            }
        }
        _ = CacheAnswer(entry, for: CacheRequest(.get, "https://a.test/", fields: [.range: lines[0]]), age: 1)
        _ = rules.updated(entry, by: head, to: request, requestedAt: start, receivedAt: start)
    }
}

private func examineFile(_ input: [UInt8]) {
    let footer = Array(input.suffix(BodyFile.footerSize))
    if let layout = BodyFile(footer: footer, fileSize: Int64(input.count)) {
        demand(layout.trailerSize <= input.count, "the trailer is larger than the file")
        _ = layout.parts(of: Array(input.suffix(layout.trailerSize)))
    }
    let body = Array(input.prefix(100))
    guard let digests = BlockDigests.digests(of: body),
        let trailer = BodyFile.trailer(id: 7, input, bodySize: Int64(body.count), digests: digests),
        let layout = BodyFile(
            footer: Array(trailer.suffix(BodyFile.footerSize)), fileSize: Int64(body.count + trailer.count))
    else { return demand(false, "a written trailer is not read") }
    let parts = layout.parts(of: trailer)
    demand(layout.id == 7 && parts?.entry == input && parts?.digests == digests, "a trailer changes")
}
