// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials

@testable import Curlew

/// A server that accepts one token at a time, and a token source that counts its calls.
final class TokenScene: Sendable {
    let server: MockServer
    let session: Session
    private let good: Lock<String>
    let fetches = Lock(0)

    init(accepting token: String) throws {
        let good = Lock(token)
        self.good = good
        server = try MockServer { request in
            request.field("Authorization") == "Bearer " + good.withLock { $0 }
                ? .text("fine") : .text("who?", status: 401)
        }
        session = Session()
    }

    func accept(_ token: String) { good.withLock { $0 = token } }

    func request(_ auth: any Authenticator, _ path: String = "/") -> Request {
        var request = Request(server.url(path))
        request.interceptors = [auth]
        return request
    }

    /// Returns numbered tokens: "t1", "t2", and so on.
    func fetch(_ old: AccessToken?) -> AccessToken {
        let number = fetches.withLock { count in
            count += 1
            return count
        }
        return AccessToken("t\(number)")
    }

    func status(_ request: Request) async throws -> Int { try await session.data(for: request).1.status.code }
}
