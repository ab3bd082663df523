// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MockResponse {
    /// A further header field, after those that are there.
    ///
    /// The same name may come again.
    public func field(_ name: String, _ value: String) -> MockResponse {
        changed { $0.fields.append((name, value)) }
    }

    /// Another status code.
    /// - Parameters:
    ///   - code: the code.
    ///   - reason: the reason phrase; by default the usual one of the code, or none.
    public func status(_ code: Int, reason: String? = nil) -> MockResponse {
        changed { response in
            response.status = code
            response.reason = reason
        }
    }

    /// The body goes out in chunks (RFC 9112 §7.1) instead of under a `Content-Length`.
    ///
    /// A client of HTTP/1.0 gets `untilClose()` instead.
    /// - Parameter size: bytes for each chunk but the last.
    public func chunked(size: Int = 8192) -> MockResponse {
        changed { $0.framing = .chunked(size: max(1, size)) }
    }

    /// The body has no declared length and ends with the connection (RFC 9112 §6.3, rule 8).
    public func untilClose() -> MockResponse {
        changed { $0.framing = .untilClose }
    }

    /// A trailer field after the last chunk (RFC 9112 §7.1.2), announced by `Trailer`.
    ///
    /// Makes the answer chunked.
    public func trailer(_ name: String, _ value: String) -> MockResponse {
        changed { response in
            response.trailers.append((name, value))
            if case .chunked = response.framing { return }
            response.framing = .chunked(size: 8192)
        }
    }

    /// A 1xx response that goes out before the head (RFC 9110 §15.2); may be used many times.
    public func informational(_ code: Int, _ fields: [(name: String, value: String)] = []) -> MockResponse {
        changed { $0.informational.append((code, fields)) }
    }

    /// The body goes out a few bytes at a time.
    /// - Parameters:
    ///   - bytes: how many bytes to send before each pause.
    ///   - pause: how long to wait between.
    public func dripping(bytes: Int, every pause: Duration) -> MockResponse {
        changed { $0.pace = Pace(bytes: max(1, bytes), pause: pause) }
    }

    /// Something happens to the connection at a moment of the answer; may be used many times.
    ///
    /// Faults at one point happen in the order they were added.
    public func fault(_ fault: SocketFault, at point: Point) -> MockResponse {
        changed { $0.faults.append((point, fault)) }
    }

    /// The connection closes after the answer, and the answer says so (`Connection: close`).
    ///
    /// To close without saying so use `fault(.close, at: .end)`.
    public func closing() -> MockResponse {
        changed { $0.closes = true }
    }

    private func changed(_ change: (inout MockResponse) -> Void) -> MockResponse {
        var copy = self
        change(&copy)
        return copy
    }
}
