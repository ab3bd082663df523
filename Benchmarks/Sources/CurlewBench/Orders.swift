// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Measuring

/// What an API might answer.
private struct Order: Codable, Sendable {
    struct Line: Codable, Sendable {
        var article: String
        var count: Int
        var price: Double
        var tags: [String]
    }

    var id: Int
    var customer: String
    var isPaid: Bool
    var total: Double
    var currency: String
    var note: String?
    var lines: [Line]
}

/// Gets and decodes orders: through a client, or with a session and a decoder by hand.
struct Orders {
    private let session: Session
    private let client: JSONClient?
    private let decoder = JSONDecoder()

    init(_ job: Job, _ session: Session) throws {
        self.session = session
        let root = String(job.url.dropLast("json".count))
        client = job.hasClient ? Client(try BaseURL(root), session: session) : nil
    }

    /// - Returns: How many bytes of it there are to check; what they were in JSON is not known here.
    @inline(never)
    func decoded(_ request: Request) async throws -> Int {
        guard let client else {
            let (data, head) = try await session.data(for: request)
            guard head.status.isSuccess else { die("status \(head.status)") }
            return try checked(decoder.decode(Order.self, from: data))
        }
        return try checked(await client.get("json", as: Order.self))
    }

    private func checked(_ order: Order) throws -> Int {
        if order.lines.count != 12 { die("\(order.lines.count) lines, expected 12") }
        return order.lines.count
    }
}
