// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MultipartForm {
    /// The upload progress of one part of a form; see ``MultipartForm/progress(at:)``.
    public struct PartProgress: Sendable, Hashable {
        /// The index of the part in the form, from 0.
        public let index: Int
        /// The part's name; nil for a part that was created from fields.
        public let name: String?
        /// The number of sent bytes of the part's content, without its fields.
        public let sent: Int64
        /// The size of the part's content in bytes; nil while it is unknown.
        public let total: Int64?
        /// Whether the whole part was sent.
        public let isFinished: Bool

        /// The sent fraction, from 0 to 1; nil while the length is unknown.
        public var fraction: Double? {
            if isFinished { return 1 }
            return total.map { $0 > 0 ? min(max(Double(sent) / Double($0), 0), 1) : 0 }
        }
    }
}
