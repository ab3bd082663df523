// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct HeaderChangesTests {
    @Test func dictionaryLiteralsSetAndRemoveFields() {
        let value: String? = nil
        let changes: HeaderChanges = [
            "X-Trace": 7, .accept: "a/b", "x-many": "1", "X-Many": "2", .acceptLanguage: nil, .referer: value,
            .contentType: MediaType.json, "x-trace": nil,
        ]
        #expect(changes["x-trace"] == "7", "a value overrides nil")
        #expect(changes["X-Many"] == "1, 2" && changes[.contentType] == "application/json")
        #expect(changes.removed == [.acceptLanguage, .referer])
        #expect(!changes.isEmpty && HeaderChanges().isEmpty && !([.accept: nil] as HeaderChanges).isEmpty)
    }

    /// RQ-28: nil removes a field.
    @Test func settingNilRemovesAField() {
        var changes: HeaderChanges = [:]
        changes[.accept] = "a"
        changes.append(.accept, "b")
        #expect(changes[.accept] == "a, b")
        changes[.accept] = nil
        #expect(changes[.accept] == nil && changes.removed == [.accept])
        changes.set(.accept, MediaType.json)
        changes.set(.accept, 3)
        #expect(changes[.accept] == "3" && changes.removed.isEmpty)
        changes[.accept] = nil
        changes[.accept] = nil
        #expect(changes.removed == [.accept])
        changes.inherit(.accept)
        #expect(changes.isEmpty)
    }

    /// RQ-24, RQ-39: the changes nearer to the call override the others; unset fields are inherited.
    @Test func mergingPrefersTheNearerChanges() {
        let far: HeaderChanges = [.accept: "far", "X-Far": "1", .referer: nil, "X-Both": "far"]
        let near: HeaderChanges = [.accept: "near", "X-Far": nil, .referer: "r"]
        let merged = far.merging(near)
        #expect(merged[.accept] == "near" && merged[.referer] == "r" && merged["X-Both"] == "far")
        #expect(merged.removed == ["X-Far"])
        #expect(far.merging([:]) == far && HeaderChanges().merging(far) == far)
    }

    @Test func secretsAreNeitherDescribedNorEncoded() throws {
        let changes: HeaderChanges = [.authorization: "Bearer secret", "X-A": "b", .accept: nil]
        #expect(!"\(changes)".contains("secret") && "\(changes)".contains("X-A: b"))
        let data = try JSONEncoder().encode(changes)
        #expect(!String(decoding: data, as: UTF8.self).contains("secret"))
        let read = try JSONDecoder().decode(HeaderChanges.self, from: data)
        #expect(read == ["X-A": "b", .accept: nil])
        #expect(try JSONDecoder().decode(HeaderChanges.self, from: Data("{}".utf8)).isEmpty)
        #expect(changes.withoutSensitiveFields()[.authorization] == nil)
    }
}

/// The merging of request options.
@Suite(.timeLimit(.minutes(5)))
struct OptionLayerTests {
    /// RQ-39, RQ-40: each unset option is inherited on its own.
    @Test func setOptionsOverrideInheritedOnes() {
        let far: Request.Options = [
            .timeouts(Timeouts(total: .seconds(1))), .timeout(.seconds(9)), .priority(.high), .label("far"),
            .responseLimit(.bytes(1)), .redirects(.never),
            .connection(.own), .statuses(.any), .accepting("a/b"), .decompression(.off), .expectContinue(.never),
            .compression(.gzip(above: .bytes(1))),
        ]
        #expect(far.merging([]) == far && Request.Options().merging(far) == far)
        let near = far.merging([.priority(.normal), .label("near"), .statuses(.success), .connection(.shared)])
        #expect(near.priority == .normal && near.label == "near" && near.connection == .shared)
        #expect(
            near.statuses == .success && near.timeouts.total == .seconds(9) && near.redirects == RedirectPolicy.never)
        #expect(near.responseLimit == .bytes(1) && near.accepting == ["a/b"] && near.decompression == .off)
        let longer = far.merging(.timeouts(Timeouts(total: .seconds(60))))
        #expect(longer.timeouts.total == .seconds(60), "set members of overriding timeouts replace it")
        let idle = far.merging(.timeouts(Timeouts(idle: nil)))
        #expect(idle.timeouts.total == .seconds(9) && idle.timeouts.idle == nil, "other members are inherited")
        #expect(near.expectContinue == .never && near.compression != nil)
    }

    @Test func optionsAreUnsetByDefault() {
        let options = Request.Options()
        #expect(options == [] && options.priority == .normal && options.connection == .shared)
        #expect(options.timeouts == Timeouts() && options.statuses == nil)
        var changed = options
        changed.timeouts.total = .seconds(1)
        changed.timeouts = Timeouts()
        #expect(changed == options)
    }

    @Test func zeroTimeoutIsRejected() throws {
        let request = Request("http://h/", options: .timeout(.zero))
        let error = #expect(throws: NetworkError.self) { try request.validated() }
        #expect(error?.kind == .invalidRequest && error?.message.contains("timeout") == true)
    }

    /// HS-19: options can be encoded and decoded.
    @Test func optionsAreEncodedAndDecoded() throws {
        let options: Request.Options = [
            .timeouts(Timeouts(idle: nil)), .timeout(.milliseconds(1500)), .priority(.high), .label("x"),
            .responseLimit(.kibibytes(3)),
            .redirects(.follow(max: 3)), .statuses([204]), .accepting("a/b"), .connection(.own),
            .decompression(.off), .expectContinue(.never),
            .compression(.gzip(above: .bytes(1))),
        ]
        let data = try JSONEncoder().encode(options)
        #expect(try JSONDecoder().decode(Request.Options.self, from: data) == options)
        #expect(String(decoding: data, as: UTF8.self).contains(#""total":1.5"#))
        #expect(try JSONDecoder().decode(Request.Options.self, from: Data("{}".utf8)) == [])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Request.Options.self, from: Data(#"{"timeouts": {"total": -1}}"#.utf8))
        }
    }
}
