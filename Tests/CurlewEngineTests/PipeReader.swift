// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Glibc
import Testing

@testable import CurlewEngine

/// A reader that pulls from a pipe like the loop.
struct PipeReader {
    let pipe: UploadPipe

    /// Pulls once and returns the bytes and the result that libcurl would get.
    func pull(_ capacity: Int) -> (bytes: [UInt8], result: UploadPipe.Pulled) {
        var buffer = [UInt8](repeating: 0xEE, count: capacity + 1)
        let result = buffer.withUnsafeMutableBytes { pipe.pull(into: $0.baseAddress!, capacity) }
        #expect(buffer[capacity] == 0xEE, "wrote past the buffer")
        guard case .bytes(let count) = result else { return ([], result) }
        return (Array(buffer[..<count]), result)
    }

    /// Pulls until the pipe returns a result other than bytes.
    func pullAll(_ capacity: Int) -> (bytes: [UInt8], result: UploadPipe.Pulled) {
        var all: [UInt8] = []
        while true {
            let (bytes, result) = pull(capacity)
            guard case .bytes = result else { return (all, result) }
            all += bytes
        }
    }
}

extension UploadPipe.Pulled: CustomStringConvertible {
    public var description: String {
        switch self {
        case .bytes(let count): "bytes(\(count))"
        case .wait: "wait"
        case .end: "end"
        case .failed(.bodySource(let error)): "failed: \(error)"
        case .failed(.bodyTooShort(let sent, let declared)): "too short: \(sent) of \(declared)"
        case .failed(.bodyTooLong(let declared)): "too long: over \(declared)"
        case .failed: "failed"
        }
    }
}

/// A pipe whose producer is the test itself.
final class OpenedPipe: Sendable {
    let pipe: UploadPipe
    private let feeds: Lock<[UploadPipe.Feed]>
    private let stops: Lock<[Int]>
    private let wishes: Lock<Int>

    init(length: Int64? = nil, canReplay: Bool = false) {
        let feeds = Lock<[UploadPipe.Feed]>([])
        let stops = Lock<[Int]>([])
        let wishes = Lock(0)
        self.feeds = feeds
        self.stops = stops
        self.wishes = wishes
        pipe = UploadPipe(length: length, canReplay: canReplay, wantsMore: { wishes.withLock { $0 += 1 } }) { feed in
            let number = feeds.withLock { feeds in
                feeds.append(feed)
                return feeds.count
            }
            return { stops.withLock { $0.append(number) } }
        }
    }

    deinit { feeds.withLock { $0 = [] } }

    var reader: PipeReader { PipeReader(pipe: pipe) }
    /// The number of times a producer was opened.
    var openings: Int { feeds.withLock { $0.count } }
    /// The numbers of the producers that were stopped, counted from 1.
    var stopped: [Int] { stops.withLock { $0 } }
    /// The number of times the pipe called `wantsMore`.
    var wanted: Int { wishes.withLock { $0 } }

    /// The newest producer's feed; pulls once to open the pipe if it is not open yet.
    var feed: UploadPipe.Feed {
        if openings == 0 { _ = reader.pull(1) }
        return feeds.withLock { $0[$0.count - 1] }
    }
}
