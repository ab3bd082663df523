// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A typical response of an API, about 1 KiB of JSON.
public struct Order: Codable, Sendable {
    /// One article of an order.
    public struct Line: Codable, Sendable {
        /// The name of the article.
        public let article: String
        /// The number of pieces.
        public let count: Int
        /// The price of a piece.
        public let price: Double
        /// Short labels.
        public let tags: [String]
    }

    /// The number of the order.
    public let id: Int
    /// The name of the customer.
    public let customer: String
    /// Whether the customer has paid.
    public let isPaid: Bool
    /// The sum of all lines.
    public let total: Double
    /// The code of the currency, such as "EUR".
    public let currency: String
    /// A remark; often null.
    public let note: String?
    /// The articles.
    public let lines: [Line]
}
