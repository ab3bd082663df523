// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Foundation
import Testing

@testable import CurlewXML

/// A program that uses only `localizedDescription` shows the position and the message.
@Suite struct XMLErrorTests {
    @Test func localizedDescriptionIsTheDescription() {
        let error = XMLError(.malformed, code: 4, "It is wrong.", hint: "Look.", line: 3, column: 7)
        #expect(error.localizedDescription == "line 3, column 7: It is wrong. (libxml2 4)")
        #expect((error as any Error).localizedDescription == error.description)
        #expect(error.recoverySuggestion == "Look.")
        #expect(XMLError(.invalidPath, "No.").recoverySuggestion == nil)
    }
}
