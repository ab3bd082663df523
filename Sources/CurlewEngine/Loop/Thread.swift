// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// Starts a detached thread with all signals blocked; `ps` and debuggers show its name, of at most 15 bytes.
///
/// Returns errno if the system refuses, 0 otherwise. The captures of `body` are released when the thread ends.
package func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> CInt {
    let retained = Unmanaged.passRetained(ThreadBody(name, body))
    let failure = curlew_thread_start(
        { argument in
            if let argument { Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run() }
            return nil
        }, retained.toOpaque())
    if failure != 0 { retained.release() }
    return failure
}

private final class ThreadBody: Sendable {
    private let name: String
    private let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    func run() {
        curlew_thread_name(name)
        body()
    }
}
