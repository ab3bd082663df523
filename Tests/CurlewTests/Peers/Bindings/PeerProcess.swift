// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

/// A child program whose output can be read, and which ends with this object or with this process, even after a crash.
///
/// A shell supervises the program: it reads a socket whose other end belongs to this process alone. The end of that
/// socket, which even a crash causes, makes the shell end the program and remove its folder. Shell and program form a
/// process group, which the shell kills at last. Neither inherits the standard output or standard error of this
/// process: a reader of those would otherwise wait until the last writer has closed them.
final class PeerProcess: Sendable {
    private let shell: pid_t
    private let lifeline: Int32
    private let output: Int32

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: The path of the program, then its arguments.
    ///   - folder: The folder that is removed with its contents after the program has ended.
    init(_ arguments: [String], folder: String) throws {
        let script = """
            folder=$1; shift
            # The libraries for this process, such as a newer OpenSSL, may not fit the program.
            unset LD_LIBRARY_PATH
            "$@" < /dev/null & server=$!
            exec > /dev/null 2>&1
            cat
            kill "$server"
            { sleep 5; kill -KILL "$server"; } &
            wait "$server"
            rm -rf "$folder"
            kill -KILL 0
            """
        let (lifeline, lifelineEnd) = try makePair()
        let (output, outputEnd) = try makePair()
        defer {
            close(lifelineEnd)
            close(outputEnd)
        }
        (self.lifeline, self.output) = (lifeline, output)
        shell = try spawn(["/bin/sh", "-c", script, "peer", folder] + arguments, input: lifelineEnd, output: outputEnd)
    }

    deinit {
        close(lifeline)
        close(output)
        waitpid(shell, nil, 0)
    }

    /// Reads the output until it contains a text and returns nil; returns the output if the program ends before.
    func failure(before text: String) -> String? {
        var seen: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(output, &buffer, buffer.count)
            if count <= 0 { return String(decoding: seen, as: UTF8.self) }
            seen.append(contentsOf: buffer[..<count])
            if String(decoding: seen, as: UTF8.self).contains(text) { return nil }
        }
    }
}

/// Creates two connected sockets, which unlike a pipe are close-on-exec from the start.
private func makePair() throws -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw PeerFailure("socketpair failed with errno \(errno)") }
    return (ends[0], ends[1])
}

/// Starts a program with no signal blocked or ignored, regardless of the signal mask of the calling thread.
private func spawn(_ arguments: [String], input: Int32, output: Int32) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    // Pipes of other tests must not stay open in the child.
    for descriptor in 3..<4096 { posix_spawn_file_actions_addclose(&actions, Int32(descriptor)) }

    var attributes = posix_spawnattr_t()
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    let flags = Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP)
    posix_spawnattr_setflags(&attributes, flags)

    var words = arguments.map { strdup($0) } + [nil]
    defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
        for word in words { free(word) }
    }
    var process: pid_t = 0
    let failure = posix_spawn(&process, arguments[0], &actions, &attributes, &words, environ)
    guard failure == 0 else { throw PeerFailure("\(arguments[0]) could not be started: errno \(failure)") }
    return process
}

/// Returns a port of the loopback interface that is free at the moment.
func findFreePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw PeerFailure("socket failed with errno \(errno)") }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            bind(descriptor, address, length) == 0 && getsockname(descriptor, address, &length) == 0
        }
    }
    guard status else { throw PeerFailure("no free port: errno \(errno)") }
    return UInt16(bigEndian: address.sin_port)
}
