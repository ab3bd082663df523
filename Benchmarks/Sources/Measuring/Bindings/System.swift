// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Glibc

/// Lets the high-water mark of resident memory start afresh, where the kernel can.
func resetPeakMemory() {
    let clear = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
    guard clear >= 0 else { return }
    _ = write(clear, "5", 1)
    close(clear)
}

/// Gives the free memory of the heap back to the kernel, where the C library can.
///
/// The function is looked up, since Swift's module of the C library lacks it.
func trimHeap() {
    guard let symbol = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> CInt).self)(0)
}

/// Runs this program once more, with other arguments and the same output, and waits for it.
///
/// - Parameter arguments: All but the name of the program.
/// - Returns: Whether it ended well.
public func runAgain(_ arguments: [String]) -> Bool {
    fflush(nil)
    var words: [UnsafeMutablePointer<CChar>?] = (CommandLine.arguments.prefix(1) + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var (process, status): (pid_t, CInt) = (0, -1)
    guard posix_spawn(&process, "/proc/self/exe", nil, nil, &words, environ) == 0 else { return false }
    return waitpid(process, &status, 0) == process && status == 0
}

/// A row of the process's status, in KiB.
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

/// All of a small file.
///
/// - Parameter path: Where it is; a missing one is empty.
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

/// A new file that bytes are written to with `write(2)`.
public struct OutputFile: Sendable {
    private let descriptor: CInt

    /// Makes the file, or empties it.
    public init(_ path: String) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        if descriptor < 0 { die("\(path) cannot be opened") }
    }

    /// Writes all of it.
    public func write(_ bytes: UnsafeRawBufferPointer) {
        var done = 0
        while done < bytes.count {
            let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
            if count <= 0 { die("the file cannot be written") }
            done += count
        }
    }
}

/// Lets the process have as many descriptors as it may.
public func raiseFileLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// Runs asynchronous work from a plain `main`, and waits for it: an asynchronous one upsets callgrind.
///
/// - Parameter work: What to do.
public func runBlocking(_ work: @escaping @Sendable () async throws -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task {
        do { try await work() } catch { die("\(error)") }
        done.signal()
    }
    done.wait()
}
