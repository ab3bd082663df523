// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The rules of W3C Trace Context, level 1; comments name sections of https://www.w3.org/TR/trace-context-1/.
@Suite("Trace context")
struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    // §3.2.2: version, trace-id, parent-id, flags.
    @Test(arguments: [
        ("00-\(trace)-\(span)-01", true), ("00-\(trace)-\(span)-00", false),
        // §3.2.2.5: all flags except the lowest are unknown and are not propagated.
        ("00-\(trace)-\(span)-ff", true), ("00-\(trace)-\(span)-fe", false), ("00-\(trace)-\(span)-02", false),
        // §3.2.4: higher versions are parsed as far as version 00 defines them.
        ("01-\(trace)-\(span)-01", true), ("cc-\(trace)-\(span)-01-what-the-future-will-be-like", true),
        ("cc-\(trace)-\(span)-00-", false), ("fe-\(trace)-\(span)-01", true),
    ])
    func validParentsAreParsed(_ text: String, _ isSampled: Bool) throws {
        let context = try #require(TraceContext(traceparent: text))
        #expect("\(context.traceID)" == Self.trace)
        #expect("\(context.spanID)" == Self.span)
        #expect(context.isSampled == isSampled)
        #expect(context.traceparent == "00-\(Self.trace)-\(Self.span)-\(isSampled ? "01" : "00")")
        #expect(context.state.isEmpty && context.tracestate == nil)
        #expect("\(context)" == context.traceparent)
    }

    @Test(arguments: [
        "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-001",
        // §3.2.2.1: version ff is invalid; version 00 ends after the flags.
        "ff-\(trace)-\(span)-01", "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-what", "00-\(trace)-\(span)-01 ",
        " 00-\(trace)-\(span)-01", "0-\(trace)-\(span)-01", "000-\(trace)-\(span)-01", "0G-\(trace)-\(span)-01",
        "0A-\(trace)-\(span)-01", ".0-\(trace)-\(span)-01",
        // §3.2.2.3 and §3.2.2.4: all zeros are invalid; IDs have exactly 32 and 16 lower-case hexadecimal digits.
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-\(span)-01", "00-\(trace)-00F067AA0BA902B7-01",
        "00-\(trace.dropLast())-\(span)-01", "00-\(trace)0-\(span)-01", "00-\(trace)-\(span.dropLast())-01",
        "00-\(trace)-\(span)0-01", "00-\(trace.dropLast())g-\(span)-01", "00-\(trace)-\(span.dropLast())+-01",
        "00-\(trace.dropLast(2))é-\(span)-01",
        // §3.2.2.5: flags are two digits.
        "00-\(trace)-\(span)-0G", "00-\(trace)-\(span)-0A", "00-\(trace)-\(span)-.0",
        // Only dashes separate the parts.
        "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01",
        // §3.2.4: the rest of a higher version begins with a dash.
        "cc-\(trace)-\(span)-01.what", "cc-\(trace)-\(span)-011", "cc-\(trace)-\(span)-0",
        // Two fields of one message, joined.
        "00-\(trace)-\(span)-01, 00-\(trace)-\(span)-01", "00-\(trace)-\(span)-01,00-\(trace)-\(span)-01",
    ])
    func invalidParentsAreRejected(_ text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    private static func state(_ text: String) -> String? {
        TraceContext(traceparent: "00-\(trace)-\(span)-01", tracestate: text)?.tracestate
    }

    private static func text(_ length: Int, _ scalar: Character = "z") -> String {
        String(repeating: scalar, count: length)
    }

    // §3.3.1: a list of members; empty members and blanks around members are dropped, and the order is kept.
    @Test(arguments: [
        ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        ("foo=1 \t , \t bar=2,  baz=3", "foo=1,bar=2,baz=3"), ("foo=1,", "foo=1"),
        (",,foo=1, ,\t,bar=2", "foo=1,bar=2"),
        // §3.3.1.3.1: keys.
        ("a=1", "a=1"), ("a0_-*/=1", "a0_-*/=1"), ("fw529a3039@dt=FfC", "fw529a3039@dt=FfC"), ("0@a=1", "0@a=1"),
        ("\(text(256))=1", "\(text(256))=1"), ("\(text(241))@v=1", "\(text(241))@v=1"),
        ("t@\(text(14, "v"))=1", "t@\(text(14, "v"))=1"), ("t@a0_-*/=1", "t@a0_-*/=1"),
        // §3.3.1.3.2: values.
        ("foo=\(text(256, "v"))", "foo=\(text(256, "v"))"), ("foo=!~ +-<>;@\"x", "foo=!~ +-<>;@\"x"),
        ("foo=  1", "foo=  1"),
        // One entry for each key (§3.3.1.3): the latest entry, which is the first in the list.
        ("foo=1,bar=2,foo=3", "foo=1,bar=2"),
    ])
    func validStatesAreNormalised(_ text: String, _ expected: String) {
        #expect(Self.state(text) == expected)
    }

    @Test(arguments: [
        "foo", "foo=", "=1", "foo=1=2", "foo =1", "FOO=1", "foo.bar=1", "é=1", "foo=é", "foo=1,bar", "foo=1,bar=",
        "0foo=1", "_a=1", "*=1", "\(text(257))=1", "\(text(242))@v=1", "t@\(text(15, "v"))=1", "@v=1", "t@=1", "t@0v=1",
        "a@b@c=1", "-t@v=1", "foo=\(text(257, "v"))", "foo=a\tb", "foo=\u{7F}", "foo=1;bar\u{1}", "foo@=1,bar=2",
        "foo= ",
    ])
    func invalidTracestateIsDroppedAndTraceparentKept(_ text: String) throws {
        let context = try #require(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-01", tracestate: text))
        #expect(context.state.isEmpty)
        #expect("\(context.traceID)" == Self.trace)
    }

    // §3.3.1.1: at most 32 members.
    @Test func tracestateHasAtMost32Members() throws {
        let most = (1...32).map { "k\($0)=v" }.joined(separator: ",")
        #expect(Self.state(most) == most)
        #expect(Self.state(most + ", ,") == most)
        #expect(Self.state(most + ",more=1") == nil)
        let members = (1...40).compactMap { TraceContext.StateMember(key: "k\($0)", value: "v") }
        let made = TraceContext(traceID: .random(), spanID: .random(), isSampled: true, state: members)
        #expect(made.tracestate == most)
    }

    @Test func childKeepsTraceIDAndGetsNewSpanID() throws {
        let parent = try #require(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-00", tracestate: "a=1,b=2"))
        let child = parent.child()
        #expect(child.traceID == parent.traceID && child.spanID != parent.spanID)
        #expect(!child.isSampled && child.tracestate == "a=1,b=2")
        #expect(child != parent && parent == parent.self && Set([child, parent, parent]).count == 2)
    }

    @Test func randomContextsAreValidAndDiffer() throws {
        var seen: Set<TraceContext> = []
        for _ in 0..<1000 {
            let context = TraceContext.random(isSampled: false)
            #expect(TraceContext(traceparent: context.traceparent) == context)
            seen.insert(context)
        }
        #expect(seen.count == 1000)
        #expect(TraceContext.random().isSampled)
    }

    @Test func traceIDSpanIDAndStateMemberAreValidated() {
        #expect(TraceContext.TraceID(Self.trace)?.description == Self.trace)
        #expect(TraceContext.TraceID("00000000000000000000000000000001")?.description.last == "1")
        #expect(TraceContext.TraceID("10000000000000000000000000000000")?.description.first == "1")
        #expect(TraceContext.TraceID(Self.span) == nil)
        #expect(TraceContext.SpanID("0000000000000001")?.description == "0000000000000001")
        #expect(TraceContext.SpanID(Self.trace) == nil)
        #expect(TraceContext.StateMember(key: "a", value: "b c")?.description == "a=b c")
    }

    @Test func currentContextIsTaskLocal() async throws {
        #expect(TraceContext.current == nil)
        let context = TraceContext.random()
        await TraceContext.$current.withValue(context) {
            async let inChild = TraceContext.current
            #expect(await inChild == context)
            #expect(await Task.detached { TraceContext.current }.value == nil)
        }
        #expect(TraceContext.current == nil)
    }
}
