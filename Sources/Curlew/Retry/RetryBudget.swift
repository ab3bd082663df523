// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The number of retries that each origin has left: a share of the requests sent to it, and a reserve.
///
/// A server that is down receives no more retries than the budget allows, however many attempts fail.
final class RetryBudget: Sendable {
    /// The budget of one origin.
    private struct Account: OriginRecord {
        var balance = RetryBudget.reserve
        var updatedAt = Duration.zero
        var isInUse: Bool { false }
    }

    /// The initial balance of an origin, up to which time refills it at `refill` per second.
    static let reserve = 10.0
    static let refill = 1.0
    /// The highest balance that successful requests can accumulate.
    static let most = 100.0
    private let start = ContinuousClock.now
    /// The accounts, made at their first use: sessions without retries need none.
    private let accounts = Once<Lock<OriginTable<Account>>>()
    private let successes = Lock<UInt64>(0)

    /// Records a request, which earns a fraction of a retry.
    func deposit(_ share: Double, for origin: String, at time: Duration? = nil) {
        change(origin, time) { $0.balance = max($0.balance, min(RetryBudget.most, $0.balance + share)) }
    }

    /// Records a successful request: about one of eight is counted, and earns eight times its share.
    ///
    /// The counted requests are scattered, so that a regular pattern in the requests does not leave an origin out.
    func earn(_ share: Double, for origin: @autoclosure () -> String?) {
        let number = successes.withLock { number in
            number &+= 1
            return number
        }
        guard (number &* 0x9E37_79B9_7F4A_7C15) >> 61 == 0, let origin = origin() else { return }
        deposit(share * 8, for: origin)
    }

    /// Takes one retry from the balance; returns false when no retry, or no more than a reserve, is left.
    func withdraw(for origin: String, leaving reserve: Double = 0, at time: Duration? = nil) -> Bool {
        change(origin, time) { account in
            guard account.balance >= 1 + reserve else { return false }
            account.balance -= 1
            return true
        }
    }

    /// Returns an unused retry to the balance.
    func refund(_ origin: String, at time: Duration? = nil) {
        change(origin, time) { $0.balance = min(RetryBudget.most, $0.balance + 1) }
    }

    private func change<Value>(_ origin: String, _ time: Duration?, _ body: (inout Account) -> Value) -> Value {
        let now = time ?? ContinuousClock.now - start
        return accounts.value { Lock(OriginTable()) }.withLock { accounts in
            accounts.change(origin) { account in
                if account.balance < RetryBudget.reserve {
                    let earned = (now - account.updatedAt).inSeconds * RetryBudget.refill
                    account.balance = min(RetryBudget.reserve, account.balance + max(0, earned))
                }
                account.updatedAt = max(account.updatedAt, now)
                return body(&account)
            }
        }
    }
}
