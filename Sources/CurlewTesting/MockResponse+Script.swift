// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MockResponse {
    /// Adds a header field after the existing ones.
    ///
    /// A name may occur more than once.
    public func field(_ name: String, _ value: String) -> MockResponse {
        changed { $0.fields.append((name, value)) }
    }

    /// Replaces the status code.
    /// - Parameters:
    ///   - code: The status code.
    ///   - reason: The reason phrase; by default the usual phrase for the code, or an empty one for an unknown code.
    public func status(_ code: Int, reason: String? = nil) -> MockResponse {
        changed { response in
            response.status = code
            response.reason = reason
        }
    }

    /// Sends the body in chunks (RFC 9112 §7.1) instead of with a `Content-Length`.
    ///
    /// An HTTP/1.0 client gets `untilClose()` instead.
    /// - Parameter size: The number of bytes in each chunk except the last.
    public func chunked(size: Int = 8192) -> MockResponse {
        changed { $0.framing = .chunked(size: max(1, size)) }
    }

    /// Sends the body without a declared length; the end of the connection ends the body (RFC 9112 §6.3, rule 8).
    public func untilClose() -> MockResponse {
        changed { $0.framing = .untilClose }
    }

    /// Adds a trailer field after the last chunk (RFC 9112 §7.1.2), announced by `Trailer`.
    ///
    /// This makes the response chunked.
    public func trailer(_ name: String, _ value: String) -> MockResponse {
        changed { response in
            response.trailers.append((name, value))
            if case .chunked = response.framing { return }
            response.framing = .chunked(size: 8192)
        }
    }

    /// Adds a 1xx response that the server sends before the head (RFC 9110 §15.2); can be called several times.
    public func informational(_ code: Int, _ fields: [(name: String, value: String)] = []) -> MockResponse {
        changed { $0.informational.append((code, fields)) }
    }

    /// Sends the body a few bytes at a time.
    /// - Parameters:
    ///   - bytes: The number of bytes to send before each pause.
    ///   - pause: The length of each pause.
    public func dripping(bytes: Int, every pause: Duration) -> MockResponse {
        changed { $0.pace = Pace(bytes: max(1, bytes), pause: pause) }
    }

    /// Adds a fault that happens to the connection at a point of the response; can be called several times.
    ///
    /// Faults at the same point happen in the order in which they were added.
    public func fault(_ fault: SocketFault, at point: Point) -> MockResponse {
        changed { $0.faults.append((point, fault)) }
    }

    /// Announces the close with `Connection: close` and closes the connection after the response.
    ///
    /// To close without the announcement, use `fault(.close, at: .end)`.
    public func closing() -> MockResponse {
        changed { $0.closes = true }
    }

    private func changed(_ change: (inout MockResponse) -> Void) -> MockResponse {
        var copy = self
        change(&copy)
        return copy
    }
}
