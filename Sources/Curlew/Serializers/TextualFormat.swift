// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A format in which white space alone says nothing; in others it may be a value.
protocol TextualFormat: ResponseFormat {
    /// Whether a body is a null and nothing else.
    func isNull(_ body: Data, of head: ResponseHead) -> Bool
}
