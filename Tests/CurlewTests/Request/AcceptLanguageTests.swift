// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Accept-Language from the environment (RQ-25)", .timeLimit(.minutes(5)))
struct AcceptLanguageTests {
    static let rows: [([String: String], String?)] = [
        ([:], nil),
        (["LANG": ""], nil),
        (["LANG": "C"], nil), (["LANG": "POSIX"], nil), (["LANG": "C.UTF-8"], nil), (["LANG": "C.utf8@x"], nil),
        (["LANG": "en"], "en;q=1"),
        (["LANG": "de_AT.UTF-8"], "de-AT;q=1"), (["LANG": "de_AT.UTF-8@euro"], "de-AT;q=1"),
        (["LANG": "de_AT@euro"], "de-AT;q=1"), (["LANG": "DE_at"], "de-AT;q=1"), (["LANG": "en-GB"], "en-GB;q=1"),
        (["LANG": "es_419"], "es-419;q=1"), (["LANG": "ast_ES"], "ast-ES;q=1"),
        (["LANG": "sr_RS@latin"], "sr-Latn-RS;q=1"), (["LANG": "sr_RS.UTF-8@latin"], "sr-Latn-RS;q=1"),
        (["LANG": "uz@cyrillic"], "uz-Cyrl;q=1"), (["LANG": "ks_IN@devanagari"], "ks-Deva-IN;q=1"),
        (["LANG": "zh_hANS_cn.GB18030"], "zh-Hans-CN;q=1"), (["LANG": "sr_Cyrl@latin"], "sr-Cyrl;q=1"),
        // Precedence of the variables.
        (["LANG": "de", "LC_MESSAGES": "fr"], "fr;q=1"),
        (["LANG": "de", "LC_MESSAGES": "fr", "LC_ALL": "it"], "it;q=1"),
        (["LANG": "de", "LC_MESSAGES": "", "LC_ALL": ""], "de;q=1"), (["LANG": "de", "LC_ALL": "C"], nil),
        (["LANG": "de", "LC_CTYPE": "fr"], "de;q=1"),
        (["LANG": "de", "LANGUAGE": "en:fr"], "en;q=1, fr;q=0.9"),
        (["LANG": "de", "LANGUAGE": ""], "de;q=1"), (["LANG": "de", "LANGUAGE": ":"], "de;q=1"),
        (["LC_ALL": "C", "LANGUAGE": "en"], nil), (["LANGUAGE": "en"], nil),
        (["LANG": "POSIX", "LANGUAGE": "en"], nil),
        // Lists.
        (["LANG": "de", "LANGUAGE": "de_AT:de:DE:de_AT.UTF-8:en"], "de-AT;q=1, de;q=0.9, en;q=0.8"),
        (
            ["LANG": "a", "LANGUAGE": "en:fr:de:it:es:pt:nl:da"],
            "en;q=1, fr;q=0.9, de;q=0.8, it;q=0.7, es;q=0.6, pt;q=0.5"
        ),
        // Invalid values.
        (["LANG": "german"], nil), (["LANG": "e"], nil), (["LANG": "e1"], nil), (["LANG": "de_"], nil),
        (["LANG": "de_AUT"], nil), (["LANG": "de_4x9"], nil), (["LANG": "de_AT_x"], nil), (["LANG": "_AT"], nil),
        (["LANG": ".UTF-8"], nil), (["LANG": "@latin"], nil), (["LANG": "en\r\nX: y"], nil), (["LANG": "dé"], nil),
        (["LANG": "en;q=0.1"], nil), (["LANG": "de", "LANGUAGE": "x\ny:C:/usr"], "de;q=1"),
        (["LANG": "de", "LANGUAGE": "*:fr"], "fr;q=1"),
    ]

    @Test(arguments: rows)
    func acceptLanguageIsReadFromTheEnvironment(_ environment: [String: String], _ expected: String?) {
        #expect(AcceptLanguage.field(environment: environment) == expected)
    }

    @Test func acceptLanguageOfThisProcessIsValid() {
        #expect(AcceptLanguage.system.map(HeaderFields.isValidValue) ?? true)
    }
}
