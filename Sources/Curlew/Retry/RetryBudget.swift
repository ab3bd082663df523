// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// How many repetitions each origin has left: a share of the requests sent to it, and a reserve.
///
/// A server that is down gets no more than that on top of what it gets anyway, however many clients' tries fail.
final class RetryBudget: Sendable {
    /// What an origin has.
    private struct Account: OriginRecord {
        var balance = RetryBudget.reserve
        var settledAt = Duration.zero
        var isInUse: Bool { false }
    }

    /// What each origin has at first and never more than in reserve, and how fast it comes back each second.
    static let reserve = 10.0
    static let refill = 1.0
    /// What can be saved by many requests that went well.
    static let most = 100.0
    private let start = ContinuousClock.now
    private let accounts = Lock(OriginTable<Account>())
    private let successes = Lock<UInt64>(0)

    /// Takes note of a request, which earns a part of a repetition.
    func deposit(_ share: Double, for origin: String, at time: Duration? = nil) {
        change(origin, time) { $0.balance = max($0.balance, min(RetryBudget.most, $0.balance + share)) }
    }

    /// Takes note of a request that went well: about one of eight is looked at, and earns eight times its share.
    ///
    /// Which ones is scattered, so that a pattern in the requests does not leave an origin out.
    func earn(_ share: Double, for origin: @autoclosure () -> String?) {
        let number = successes.withLock { number in
            number &+= 1
            return number
        }
        guard (number &* 0x9E37_79B9_7F4A_7C15) >> 61 == 0, let origin = origin() else { return }
        deposit(share * 8, for: origin)
    }

    /// Whether there is a repetition left; it is taken.
    func withdraw(for origin: String, at time: Duration? = nil) -> Bool {
        change(origin, time) { account in
            guard account.balance >= 1 else { return false }
            account.balance -= 1
            return true
        }
    }

    /// Gives back what was not used.
    func refund(_ origin: String, at time: Duration? = nil) {
        change(origin, time) { $0.balance = min(RetryBudget.most, $0.balance + 1) }
    }

    private func change<Value>(_ origin: String, _ time: Duration?, _ body: (inout Account) -> Value) -> Value {
        let now = time ?? ContinuousClock.now - start
        return accounts.withLock { accounts in
            accounts.change(origin) { account in
                if account.balance < RetryBudget.reserve {
                    let earned = (now - account.settledAt).inSeconds * RetryBudget.refill
                    account.balance = min(RetryBudget.reserve, account.balance + max(0, earned))
                }
                account.settledAt = max(account.settledAt, now)
                return body(&account)
            }
        }
    }
}
