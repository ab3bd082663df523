// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The wait that a server asks for by `Retry-After`, `RateLimit` or `X-RateLimit` fields.
@Suite struct WaitAdviceTests {
    private static let now = HTTPDate(seconds: 784_111_777)

    private func wait(_ fields: HeaderFields) -> Duration? {
        WaitAdvice(ResponseHead(status: .tooManyRequests, fields: fields), now: Self.now).wait
    }

    static let rows: [(HeaderFields, Int?)] = [
        ([:], nil), (["Retry-After": "3"], 3), (["Retry-After": "0"], 0), (["Retry-After": "-1"], nil),
        (["Retry-After": ""], nil), (["Retry-After": "1.5"], nil), (["Retry-After": "soon"], nil),
        (["Retry-After": "99999999999999999999"], nil), (["Retry-After": "99999999999"], 1_000_000_000),
        (["Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (["Retry-After": "Sun, 06 Nov 1994 08:00:00 GMT"], 0),
        (["Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT", "Date": "Sun, 06 Nov 1994 08:50:30 GMT"], 7),
        (["Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT", "Date": "nonsense"], 60),
        (["RateLimit": #""default";r=0;t=30"#], 30), (["RateLimit": #""default";r=1;t=30"#], nil),
        (["RateLimit": #""a";r=0;t=5, "b"; r=0 ; t=9 , "c";r=4;t=99"#], 9), (["RateLimit": #""a";r=0"#], nil),
        (["RateLimit": "r=0;t=5;x"], nil), (["RateLimit": ";r;t=5"], nil),
        (["RateLimit-Remaining": "0", "RateLimit-Reset": "12"], 12),
        (["RateLimit-Remaining": "1", "RateLimit-Reset": "12"], nil), (["RateLimit-Remaining": "0"], nil),
        (["X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "12"], 12),
        (["X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1784111787"], 1_000_000_000),
        (["X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1184111787"], 400_000_010),
        (["Retry-After": "2", "RateLimit": #""default";r=0;t=30"#], 2),
    ]

    @Test(arguments: rows.indices) func waitAdviceIsReadFromResponseFields(_ index: Int) {
        let (fields, seconds) = Self.rows[index]
        let expected = seconds.flatMap { Duration(untrustedSeconds: Double($0)) }
        #expect(wait(fields) == expected, "\(fields)")
    }
}
