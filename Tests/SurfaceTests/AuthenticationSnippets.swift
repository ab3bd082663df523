// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

// What the documents show of authentication, so that it is known to compile.

/// Its name stands in another snippet, too.
private enum Authenticating {
    struct Signature: Authenticator {
        let key: String

        func authenticate(
            _ request: Request, context: InterceptorContext, next: Next
        ) async throws -> IncomingResponse {
            var request = request
            request.fields["X-Signature"] = key
            return try await next(request)
        }
    }
}
