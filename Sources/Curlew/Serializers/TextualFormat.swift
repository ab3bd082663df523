// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A format in which white space alone is not a value.
protocol TextualFormat: ResponseFormat {
    /// Returns whether a body is just a null.
    func isNull(_ body: Data, of head: ResponseHead) -> Bool
}
