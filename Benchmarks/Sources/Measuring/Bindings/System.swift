// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Glibc

/// Resets the peak of resident memory if the kernel supports it.
func resetPeakMemory() {
    let clear = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
    guard clear >= 0 else { return }
    _ = write(clear, "5", 1)
    close(clear)
}

/// Returns free heap memory to the kernel if the C library supports it.
///
/// The function is looked up at run time, because Swift's module of the C library does not declare it.
func trimHeap() {
    guard let symbol = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> CInt).self)(0)
}

/// Runs this program again with other arguments and the same output, and waits for it.
///
/// - Parameter arguments: The arguments without the name of the program.
/// - Returns: Whether the process succeeded.
public func runAgain(_ arguments: [String]) -> Bool {
    fflush(nil)
    var words: [UnsafeMutablePointer<CChar>?] = (CommandLine.arguments.prefix(1) + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var (process, status): (pid_t, CInt) = (0, -1)
    guard posix_spawn(&process, "/proc/self/exe", nil, nil, &words, environ) == 0 else { return false }
    return waitpid(process, &status, 0) == process && status == 0
}

/// Returns a row of the process's status, in KiB.
func statusKiB(_ name: String) -> Int {
    for line in text(of: "/proc/self/status").split(separator: "\n") where line.hasPrefix(name + ":") {
        return line.split(whereSeparator: { $0 == "\t" || $0 == " " }).dropFirst().first.flatMap { Int($0) } ?? 0
    }
    return 0
}

func complain(_ complaint: String) {
    let line = Array((complaint + "\n").utf8)
    _ = write(STDERR_FILENO, line, line.count)
}

/// Returns the text of a small file.
///
/// - Parameter path: The path of the file; the text of a missing file is empty.
public func text(of path: String) -> String {
    guard let file = fopen(path, "re") else { return "" }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    var result: [UInt8] = []
    while true {
        let count = fread(&bytes, 1, bytes.count, file)
        if count == 0 { return String(decoding: result, as: UTF8.self) }
        result += bytes[..<count]
    }
}

/// A new file for output with `write(2)`.
public struct OutputFile: Sendable {
    private let descriptor: CInt

    /// Creates the file, or truncates an existing one.
    public init(_ path: String) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        if descriptor < 0 { die("\(path) cannot be opened") }
    }

    /// Writes all bytes.
    public func write(_ bytes: UnsafeRawBufferPointer) {
        var done = 0
        while done < bytes.count {
            let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
            if count <= 0 { die("the file cannot be written") }
            done += count
        }
    }
}

/// Raises the limit of descriptors to the hard limit.
public func raiseFileLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// Runs asynchronous work from a synchronous `main` and waits for it, because callgrind fails with an async `main`.
///
/// - Parameter work: The work to run.
public func runBlocking(_ work: @escaping @Sendable () async throws -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task {
        do { try await work() } catch { die("\(error)") }
        done.signal()
    }
    done.wait()
}
