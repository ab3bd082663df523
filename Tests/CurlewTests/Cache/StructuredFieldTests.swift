// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The parser of structured fields (RFC 9651), as tables.
struct StructuredFieldTests {
    typealias Member = StructuredField.Member
    typealias ItemRow = Row<StructuredField.BareItem>
    typealias ListRow = Row<[Member]>
    typealias DictionaryRow = Row<[String: Member]>

    /// A text, and what it means; nil for an invalid text.
    struct Row<Value: Sendable>: Sendable, CustomTestStringConvertible {
        let name: String
        let text: String
        let value: Value?

        init(_ name: String, _ text: String, _ value: Value?) {
            (self.name, self.text, self.value) = (name, text, value)
        }

        var testDescription: String { name }
    }

    @Test(arguments: items) func itemIsParsed(_ row: ItemRow) {
        let expected = row.value.map { [Member.item(.init(value: $0))] }
        #expect(StructuredField.list(row.text) == expected)
    }

    @Test(arguments: lists) func listIsParsed(_ row: ListRow) {
        #expect(StructuredField.list(row.text) == row.value)
    }

    @Test(arguments: dictionaries) func dictionaryIsParsed(_ row: DictionaryRow) {
        #expect(StructuredField.dictionary(row.text) == row.value)
    }

    /// RFC 9651 §3.1 and §3.3.3.
    @Test func stringsAreTaken() {
        #expect(StructuredField.strings("\"a\", \"b\";x=1") == ["a", "b"])
        #expect(StructuredField.strings("") == [])
        #expect(StructuredField.strings("\"a\", b") == nil)
        #expect(StructuredField.strings("(\"a\")") == nil)
        #expect(StructuredField.strings("\"a") == nil)
    }

    /// RFC 9651 §4.1.6.
    @Test func stringIsSerialized() {
        #expect(StructuredField.serialized("") == "\"\"")
        #expect(StructuredField.serialized("a b~") == "\"a b~\"")
        #expect(StructuredField.serialized("a\"b\\c") == "\"a\\\"b\\\\c\"")
        #expect(StructuredField.serialized("a\tb") == nil)
        #expect(StructuredField.serialized("\u{7F}") == nil)
        #expect(StructuredField.serialized("\u{FC}") == nil)
    }

    @Test func memberIsAnItemOrAList() {
        let list = Member.list([.init(value: .integer(1))], parameters: [:])
        #expect(Self.one.bare == .integer(1) && Self.one.items == nil)
        #expect(list.bare == nil && list.items == [StructuredField.Item(value: .integer(1))])
    }

    private static let one = Member.item(.init(value: .integer(1)))
    private static let two = Member.item(.init(value: .integer(2)))

    static let items: [ItemRow] = [
        ItemRow("RFC 9651 §4.2.4 zero", "0", .integer(0)),
        ItemRow("RFC 9651 §4.2.4 a negative zero", "-0", .integer(0)),
        ItemRow("RFC 9651 §4.2.4 a positive integer", "42", .integer(42)),
        ItemRow("RFC 9651 §4.2.4 a negative integer", "-42", .integer(-42)),
        ItemRow("RFC 9651 §4.2.4 leading zeros", "0042", .integer(42)),
        ItemRow("RFC 9651 §3.3.1 the largest integer", "999999999999999", .integer(999_999_999_999_999)),
        ItemRow("RFC 9651 §3.3.1 the smallest integer", "-999999999999999", .integer(-999_999_999_999_999)),
        ItemRow("RFC 9651 §3.3.1 an integer of sixteen digits", "1000000000000000", nil),
        ItemRow("RFC 9651 §4.2.4 a sign alone", "-", nil),
        ItemRow("RFC 9651 §4.2.4 two signs", "--1", nil),
        ItemRow("RFC 9651 §4.2.4 a plus sign", "+1", nil),
        ItemRow("RFC 9651 §4.2.4 space after a sign", "- 1", nil),
        ItemRow("RFC 9651 §4.2.4 letters after an integer", "1a", nil),
        ItemRow("RFC 9651 §3.3.2 a decimal", "1.5", .decimal(1.5)),
        ItemRow("RFC 9651 §3.3.2 a negative decimal", "-0.25", .decimal(-0.25)),
        ItemRow("RFC 9651 §3.3.2 a decimal of three places", "1.123", .decimal(1.123)),
        ItemRow("RFC 9651 §3.3.2 a decimal of four places", "1.1234", nil),
        ItemRow("RFC 9651 §3.3.2 the largest decimal", "999999999999.999", .decimal(999_999_999_999.999)),
        ItemRow("RFC 9651 §3.3.2 a decimal of thirteen digits", "1000000000000.0", nil),
        ItemRow("RFC 9651 §4.2.4 a decimal without places", "1.", nil),
        ItemRow("RFC 9651 §4.2.4 a decimal without digits", ".5", nil),
        ItemRow("RFC 9651 §4.2.4 a decimal with two points", "1.2.3", nil),
        ItemRow("RFC 9651 §4.2.4 a negative decimal without digits", "-.5", nil),
        ItemRow("RFC 9651 §4.2.5 a string", "\"a b\"", .string("a b")),
        ItemRow("RFC 9651 §4.2.5 an empty string", "\"\"", .string("")),
        ItemRow("RFC 9651 §4.2.5 escapes in a string", "\"a\\\"b\\\\c\"", .string("a\"b\\c")),
        ItemRow("RFC 9651 §4.2.5 another escape", "\"a\\nb\"", nil),
        ItemRow("RFC 9651 §4.2.5 an escape at the end", "\"a\\", nil),
        ItemRow("RFC 9651 §4.2.5 a string without its end", "\"a", nil),
        ItemRow("RFC 9651 §4.2.5 a quote alone", "\"", nil),
        ItemRow("RFC 9651 §4.2.5 a tab in a string", "\"a\tb\"", nil),
        ItemRow("RFC 9651 §4.2.5 a line feed in a string", "\"a\nb\"", nil),
        ItemRow("RFC 9651 §4.2.5 a delete in a string", "\"\u{7F}\"", nil),
        ItemRow("RFC 9651 §4.2.5 other letters in a string", "\"\u{FC}\"", nil),
        ItemRow("RFC 9651 §4.2.5 apostrophes", "'a'", nil),
        ItemRow("RFC 9651 §4.2.6 a token", "foo123/456", .token("foo123/456")),
        ItemRow("RFC 9651 §4.2.6 a token with an asterisk", "*a", .token("*a")),
        ItemRow("RFC 9651 §4.2.6 a token with all characters", "a!#$%&'*+-.^_`|~:/", .token("a!#$%&'*+-.^_`|~:/")),
        ItemRow("RFC 9651 §4.2.6 a token with capitals", "Foo", .token("Foo")),
        ItemRow("RFC 9651 §4.2.6 a token that begins with a point", ".a", nil),
        ItemRow("RFC 9651 §4.2.6 a token with another letter", "a\u{FC}", nil),
        ItemRow("RFC 9651 §4.2.6 two tokens", "a b", nil),
        ItemRow("RFC 9651 §4.2.7 bytes", ":aGVsbG8=:", .bytes(Array("hello".utf8))),
        ItemRow("RFC 9651 §4.2.7 no bytes", "::", .bytes([])),
        ItemRow("RFC 9651 §4.2.7 bytes without padding", ":aGVsbG8:", .bytes(Array("hello".utf8))),
        ItemRow("RFC 9651 §4.2.7 bytes with + and /", ":+/+/:", .bytes([0xFB, 0xFF, 0xBF])),
        ItemRow("RFC 9651 §4.2.7 bytes without their end", ":aGVsbG8=", nil),
        ItemRow("RFC 9651 §4.2.7 bytes with another character", ":aGVsb-8=:", nil),
        ItemRow("RFC 9651 §4.2.7 bytes with space", ":aGVs bG8=:", nil),
        ItemRow("RFC 9651 §4.2.7 one character is no byte", ":a:", nil),
        ItemRow("RFC 9651 §4.2.8 true", "?1", .boolean(true)),
        ItemRow("RFC 9651 §4.2.8 false", "?0", .boolean(false)),
        ItemRow("RFC 9651 §4.2.8 another number", "?2", nil),
        ItemRow("RFC 9651 §4.2.8 a letter", "?T", nil),
        ItemRow("RFC 9651 §4.2.8 a question mark alone", "?", nil),
        ItemRow("RFC 9651 §4.2.8 two digits", "?10", nil),
        ItemRow("RFC 9651 §4.2.9 a date", "@1659578233", .date(1_659_578_233)),
        ItemRow("RFC 9651 §4.2.9 a date before 1970", "@-1", .date(-1)),
        ItemRow("RFC 9651 §4.2.9 a date with a fraction", "@1.0", nil),
        ItemRow("RFC 9651 §4.2.9 a date without a number", "@", nil),
        ItemRow("RFC 9651 §4.2.9 a date with letters", "@now", nil),
        ItemRow("RFC 9651 §4.2.10 a display string", "%\"a b\"", .displayString("a b")),
        ItemRow("RFC 9651 §4.2.10 a display string with an escape", "%\"f%c3%bc\"", .displayString("f\u{FC}")),
        ItemRow("RFC 9651 §4.2.10 a display string with a quote", "%\"%22%25\"", .displayString("\"%")),
        ItemRow("RFC 9651 §4.2.10 a backslash is no escape", "%\"a\\b\"", .displayString("a\\b")),
        ItemRow("RFC 9651 §4.2.10 an empty display string", "%\"\"", .displayString("")),
        ItemRow("RFC 9651 §4.2.10 an escape with capitals", "%\"f%C3%BC\"", nil),
        ItemRow("RFC 9651 §4.2.10 an escape of one digit", "%\"%c\"", nil),
        ItemRow("RFC 9651 §4.2.10 an escape without digits", "%\"%zz\"", nil),
        ItemRow("RFC 9651 §4.2.10 an escape at the end of the field", "%\"%c", nil),
        ItemRow("RFC 9651 §4.2.10 escapes that are no UTF-8", "%\"%ff\"", nil),
        ItemRow("RFC 9651 §4.2.10 a half of a character", "%\"%c3\"", nil),
        ItemRow("RFC 9651 §4.2.10 other letters in a display string", "%\"\u{FC}\"", nil),
        ItemRow("RFC 9651 §4.2.10 a tab in a display string", "%\"\t\"", nil),
        ItemRow("RFC 9651 §4.2.10 a display string without its end", "%\"a", nil),
        ItemRow("RFC 9651 §4.2.10 a percent sign alone", "%", nil),
        ItemRow("RFC 9651 §4.2.3.1 an unknown first character", "&", nil),
        ItemRow("RFC 9651 §4.2 a space before and after", "  1  ", .integer(1)),
        ItemRow("RFC 9651 §4.2 a tab before", "\t1", nil),
        ItemRow("RFC 9651 §4.2.1 a tab after", "1\t", .integer(1)),
    ]

    static let lists: [ListRow] = [
        ListRow("RFC 9651 §4.2 an empty list", "", []),
        ListRow("RFC 9651 §4.2 a list of spaces", "   ", []),
        ListRow("RFC 9651 §4.2.1 two members", "1, 2", [one, two]),
        ListRow("RFC 9651 §4.2.1 no space between members", "1,2", [one, two]),
        ListRow("RFC 9651 §4.2.1 tabs between members", "1\t,\t2", [one, two]),
        ListRow("RFC 9651 §4.2.1 a comma at the end", "1,", nil),
        ListRow("RFC 9651 §4.2.1 a comma and space at the end", "1, ", nil),
        ListRow("RFC 9651 §4.2.1 a comma at the start", ",1", nil),
        ListRow("RFC 9651 §4.2.1 two commas", "1,,2", nil),
        ListRow("RFC 9651 §4.2.1 no comma", "1 2", nil),
        ListRow("RFC 9651 §4.2.1 a line feed between members", "1,\n2", nil),
        ListRow(
            "RFC 9651 §4.2.1.2 an inner list", "(1 2)",
            [.list([.init(value: .integer(1)), .init(value: .integer(2))], parameters: [:])]),
        ListRow(
            "RFC 9651 §4.2.1.2 an inner list with spaces", "( 1  2 )",
            [.list([.init(value: .integer(1)), .init(value: .integer(2))], parameters: [:])]),
        ListRow("RFC 9651 §4.2.1.2 an empty inner list", "()", [.list([], parameters: [:])]),
        ListRow(
            "RFC 9651 §4.2.1.2 parameters of an inner list", "(1;a);b=2",
            [.list([.init(value: .integer(1), parameters: ["a": .boolean(true)])], parameters: ["b": .integer(2)])]),
        ListRow("RFC 9651 §4.2.1.2 an inner list among members", "1, (), 2", [one, .list([], parameters: [:]), two]),
        ListRow("RFC 9651 §4.2.1.2 an inner list without its end", "(1", nil),
        ListRow("RFC 9651 §4.2.1.2 an inner list without its end after space", "(1 ", nil),
        ListRow("RFC 9651 §4.2.1.2 a bracket alone", "(", nil),
        ListRow("RFC 9651 §4.2.1.2 commas in an inner list", "(1, 2)", nil),
        ListRow("RFC 9651 §4.2.1.2 a tab in an inner list", "(1\t2)", nil),
        ListRow("RFC 9651 §4.2.1.2 no space in an inner list", "(\"a\"\"b\")", nil),
        ListRow("RFC 9651 §4.2.1.2 an inner list in another", "((1))", nil),
        ListRow(
            "RFC 9651 §4.2.3.2 parameters", "1;a=2;b",
            [.item(.init(value: .integer(1), parameters: ["a": .integer(2), "b": .boolean(true)]))]),
        ListRow(
            "RFC 9651 §4.2.3.2 space before a parameter", "1;  a=2",
            [.item(.init(value: .integer(1), parameters: ["a": .integer(2)]))]),
        ListRow(
            "RFC 9651 §4.2.3.2 the last of equal parameters", "1;a=1;a=2",
            [.item(.init(value: .integer(1), parameters: ["a": .integer(2)]))]),
        ListRow("RFC 9651 §4.2.3.2 space before a semicolon", "1 ;a", nil),
        ListRow("RFC 9651 §4.2.3.2 a parameter without a key", "1;", nil),
        ListRow("RFC 9651 §4.2.3.2 a parameter without a value", "1;a=", nil),
        ListRow("RFC 9651 §4.2.3.2 an inner list as a parameter", "1;a=(1)", nil),
        ListRow("RFC 9651 §4.2.3.3 a key with capitals", "1;A", nil),
        ListRow("RFC 9651 §4.2.3.3 a key that begins with a digit", "1;1a", nil),
        ListRow(
            "RFC 9651 §4.2.3.3 a key with all characters", "1;*a-b_c.d1*",
            [.item(.init(value: .integer(1), parameters: ["*a-b_c.d1*": .boolean(true)]))]),
    ]

    static let dictionaries: [DictionaryRow] = [
        DictionaryRow("RFC 9651 §4.2 an empty dictionary", "", [:]),
        DictionaryRow("RFC 9651 §4.2.2 two keys", "a=1, b=2", ["a": one, "b": two]),
        DictionaryRow("RFC 9651 §4.2.2 no space between keys", "a=1,b=2", ["a": one, "b": two]),
        DictionaryRow("RFC 9651 §4.2.2 a key without a value", "a", ["a": .item(.init(value: .boolean(true)))]),
        DictionaryRow(
            "RFC 9651 §4.2.2 a key without a value and with parameters", "a;b=1",
            ["a": .item(.init(value: .boolean(true), parameters: ["b": .integer(1)]))]),
        DictionaryRow("RFC 9651 §4.2.2 the last of equal keys", "a=1, a=2", ["a": two]),
        DictionaryRow("RFC 9651 §4.2.2 a value that is an inner list", "a=()", ["a": .list([], parameters: [:])]),
        DictionaryRow("RFC 9651 §4.2.2 an empty value", "a=", nil),
        DictionaryRow("RFC 9651 §4.2.2 space before =", "a =1", nil),
        DictionaryRow("RFC 9651 §4.2.2 space after =", "a= 1", nil),
        DictionaryRow("RFC 9651 §4.2.2 a comma at the end of a dictionary", "a=1,", nil),
        DictionaryRow("RFC 9651 §4.2.2 a comma at the start of a dictionary", ",a=1", nil),
        DictionaryRow("RFC 9651 §4.2.2 a dictionary with two commas", "a=1,,b=2", nil),
        DictionaryRow("RFC 9651 §4.2.2 a capital", "A=1", nil),
        DictionaryRow("RFC 9651 §4.2.2 a key that is a string", "\"a\"=1", nil),
        DictionaryRow("RFC 9651 §4.2.2 a key that is a number", "1=1", nil),
        DictionaryRow(
            "RFC 9651 §4.2.2 a semicolon between keys", "a=1; b=2",
            ["a": .item(.init(value: .integer(1), parameters: ["b": .integer(2)]))]),
        DictionaryRow("RFC 9651 §4.2.2 no comma between keys", "a=1 b=2", nil),
    ]
}
