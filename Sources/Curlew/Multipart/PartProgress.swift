// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How far a part of a form was sent; see ``MultipartForm/progress(at:)``.
public struct PartProgress: Sendable, Hashable {
    /// The part's place among all, from 0.
    public let index: Int
    /// The part's name; nil for one whose fields were given.
    public let name: String?
    /// Bytes sent of what the part holds, without its fields.
    public let sent: Int64
    /// How many bytes the part holds; nil while that is not known.
    public let total: Int64?
    /// Whether all of it was sent.
    public let isFinished: Bool

    /// How much is done, from 0 to 1; nil while the length is not known.
    public var fraction: Double? {
        if isFinished { return 1 }
        return total.map { $0 > 0 ? min(max(Double(sent) / Double($0), 0), 1) : 0 }
    }
}
