// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Measuring

/// A page of a list.
private struct Page: Codable, Sendable {
    var total: Int
    var next: String?
    var orders: [Order]
}

/// Gets and decodes an order or a page of orders.
///
/// It uses a client with Curlew's or Foundation's decoder, or a session and Foundation's decoder directly.
struct Orders {
    private let session: Session
    private let client: JSONClient?
    private let decoder = JSONDecoder()
    private let path: Path
    private let isPage: Bool

    init(_ job: Job, _ session: Session) throws {
        self.session = session
        let name = job.url.split(separator: "/").last.map { String($0) } ?? ""
        path = Path(raw: name)
        isPage = name == "json10"
        let root = String(job.url.dropLast(name.utf8.count))
        let responses = job.usesFoundation ? JSON(decoder: JSONDecoder()) : JSON()
        client = job.hasClient ? Client(try BaseURL(root), responses: responses, session: session) : nil
    }

    /// Gets and decodes the response.
    ///
    /// - Returns: The number of lines of all orders; the number of bytes of JSON is not known here.
    @inline(never)
    func decoded(_ request: Request) async throws -> Int {
        guard isPage else { return checked(try await fetched(request)) }
        let page: Page = try await fetched(request)
        if page.orders.count != 10 { die("\(page.orders.count) orders, expected 10") }
        return page.orders.reduce(0) { $0 + checked($1) }
    }

    private func fetched<Value: Decodable & Sendable>(_ request: Request) async throws -> Value {
        if let client { return try await client.get(path, as: Value.self) }
        let (data, head) = try await session.data(for: request)
        guard head.status.isSuccess else { die("status \(head.status)") }
        return try decoder.decode(Value.self, from: data)
    }

    private func checked(_ order: Order) -> Int {
        if order.lines.count != 12 { die("\(order.lines.count) lines, expected 12") }
        return order.lines.count
    }
}
