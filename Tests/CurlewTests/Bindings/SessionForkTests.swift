// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewShims
import CurlewTesting
import Glibc
import Testing

@Suite("A session after fork()", .serialized, .timeLimit(.minutes(5)))
struct SessionForkTests {
    /// The body of a child process, which gets a session and returns the exit status.
    private final class Child {
        var session: Session?
        let run: (Child) -> CInt

        init(_ session: Session, _ run: @escaping (Child) -> CInt) {
            self.session = session
            self.run = run
        }

        /// Runs in a forked child and returns its exit status or the negated signal; a child that hangs is killed.
        ///
        /// A child may inherit a locked lock of Swift's runtime from another thread. A deadlock in the library would
        /// happen every time, so a child that was killed is retried.
        func forked() -> CInt {
            var status = forkedOnce()
            for _ in 0..<2 where status == -SIGALRM { status = forkedOnce() }
            return status
        }

        private func forkedOnce() -> CInt {
            curlew_run_in_fork(
                { argument in
                    dieUnlessQuick()
                    guard let argument else { return 99 }
                    let child = Unmanaged<Child>.fromOpaque(argument).takeUnretainedValue()
                    return child.run(child)
                }, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    @Test func transfersInAChildEndAtOnceAndParentTransfersContinue() async throws {
        let server = try MockServer()
        let gate = Gate()
        server.on("GET", "/", .text("hello"))
        server.on("GET", "/held", .text("hello").fault(.stall(gate), at: .body(2)))
        let session = Session()
        _ = try await session.data(for: Request(.get, server.url("/")))
        let held = session.transfer(Request(.get, server.url("/held"))).start()
        await gate.waitUntilReached()
        let url = server.url("/")
        let status = Child(session) { child in
            guard let session = child.session else { return 1 }
            let transfer = session.transfer(Request(.get, url)).start()
            if transfer.state != .finished { return 2 }
            if transfer.currentProgress.isFinished { return 3 }
            if transfer.metrics == nil { return 4 }
            transfer.pause()
            transfer.cancel()
            return 0
        }.forked()
        #expect(status == 0)
        gate.open()
        #expect(try await held.value.count == 5)
        #expect(try await session.data(for: Request(.get, server.url("/"))).0.count == 5)
    }

    @Test func releaseOfASessionInAChildIsHarmless() async throws {
        let server = try MockServer()
        server.on("GET", "/", .text("hello"))
        let child: Child
        do {
            let session = Session()
            _ = try await session.data(for: Request(.get, server.url("/")))
            child = Child(session) { child in
                let transfer = child.session?.transfer("http://127.0.0.1:1/")
                child.session = nil
                transfer?.start()
                return transfer?.state == .finished ? 0 : 1
            }
        }
        #expect(child.forked() == 0)
        #expect(try await child.session?.data(for: Request(.get, server.url("/"))).0.count == 5)
    }
}

/// Ends a child process that hangs.
///
/// The threads of tasks block every signal, and a child inherits that.
private func dieUnlessQuick() {
    var alone = sigset_t()
    sigemptyset(&alone)
    sigaddset(&alone, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alone, nil)
    alarm(5)
}
