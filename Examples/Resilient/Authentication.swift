// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Requests with authentication: tokens that expire under load, and credentials that do not leak to other origins.

import Curlew
import CurlewAuth
import CurlewTesting

extension Resilient {
    static func authentication(_ stage: inout Stage) async {
        await stage.show("100 at once, 1 token", "100 responses, 1 new token") { stage in
            let server = try stage.server { $0.field("Authorization") == "Bearer 2" ? .fine : .busy(401) }
            let login = try stage.server(.json(#"{"access_token":"2","token_type":"Bearer","expires_in":3600}"#))
            let app = OAuth2Client(login.url("/token"), id: "demo", secret: "hush")
            let session = Session(interceptors: [.refreshToken(AccessToken("1", refreshToken: "r"), of: app)])
            let request = Request(server.url("/"))
            let responses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<100 { group.addTask { try await session.data(for: request).1.status.code } }
                return try await group.reduce(0) { $0 + ($1 == 200 ? 1 : 0) }
            }
            return "\(responses) responses, \(login.requestCount) new token"
        }
        await stage.show("a failed token refresh", "authentication failed: invalid_grant") { stage in
            let login = try stage.server(.json(#"{"error":"invalid_grant"}"#, status: 400))
            let server = try stage.server(.fine)
            let app = OAuth2Client(login.url("/token"), id: "demo", secret: "hush")
            let session = Session(interceptors: [.clientCredentials(app)])
            do throws(NetworkError) {
                return "\(try await session.data(for: Request(server.url("/"))).1.status.code)"
            } catch {
                return "\(error.kind): \(error.cause ?? error)"
            }
        }
        await stage.show("a redirect to another origin", "nothing") { stage in
            let other = try stage.server { .text($0.field("Authorization") ?? "nothing") }
            let server = try stage.server(.redirect(to: other.url("/")))
            let session = Session(interceptors: [.refreshing(AccessToken("secret")) { _ in AccessToken("other") }])
            let (data, _) = try await session.data(for: Request(server.url("/")))
            return String(decoding: data, as: UTF8.self)
        }
    }
}
