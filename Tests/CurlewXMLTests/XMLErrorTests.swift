// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Foundation
import Testing

@testable import CurlewXML

/// A program that knows only `localizedDescription` shows the place and the message.
@Suite struct XMLErrorTests {
    @Test func theDescriptionIsTheLocalizedOne() {
        let error = XMLError(.malformed, code: 4, "It is none.", hint: "Look.", line: 3, column: 7)
        #expect(error.localizedDescription == "line 3, column 7: It is none. (libxml2 4)")
        #expect((error as any Error).localizedDescription == error.description)
        #expect(error.recoverySuggestion == "Look.")
        #expect(XMLError(.invalidPath, "No.").recoverySuggestion == nil)
    }
}
