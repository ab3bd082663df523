// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// How many repetitions each origin has left: a share of the requests sent to it, and a reserve.
///
/// A server that is down gets no more than that on top of what it gets anyway, however many clients' tries fail.
final class RetryBudget: Sendable {
    /// What an origin has.
    fileprivate struct Account {
        var balance: Double
        var settledAt: Duration
        /// The latest use, for forgetting.
        var usedAt: UInt64
    }

    fileprivate struct State {
        var accounts: [String: Account] = [:]
        var uses: UInt64 = 0
    }

    /// What each origin has at first and never more than in reserve, and how fast it comes back each second.
    static let reserve = 10.0
    static let refill = 1.0
    /// What can be saved by many requests that went well.
    static let most = 100.0
    /// How many origins are remembered.
    static let origins = 256

    private let start = ContinuousClock.now
    private let state = Lock(State())

    /// Takes note of a request, which earns a part of a repetition.
    func deposit(_ share: Double, for origin: String, at time: Duration? = nil) {
        change(origin, time) { $0.balance = max($0.balance, min(RetryBudget.most, $0.balance + share)) }
    }

    /// Whether there is a repetition left; it is taken.
    func withdraw(for origin: String, at time: Duration? = nil) -> Bool {
        change(origin, time) { account in
            guard account.balance >= 1 else { return false }
            account.balance -= 1
            return true
        }
    }

    private func change<Value>(_ origin: String, _ time: Duration?, _ body: (inout Account) -> Value) -> Value {
        let now = time ?? ContinuousClock.now - start
        return state.withLock { state in
            state.uses += 1
            var account =
                state.accounts[origin] ?? Account(balance: RetryBudget.reserve, settledAt: now, usedAt: state.uses)
            if account.balance < RetryBudget.reserve {
                let earned = (now - account.settledAt).inSeconds * RetryBudget.refill
                account.balance = min(RetryBudget.reserve, account.balance + max(0, earned))
            }
            account.settledAt = now
            account.usedAt = state.uses
            defer {
                state.accounts[origin] = account
                if state.accounts.count > RetryBudget.origins { state.forgetOldest() }
            }
            return body(&account)
        }
    }
}

extension RetryBudget.State {
    fileprivate mutating func forgetOldest() {
        guard let oldest = accounts.min(by: { $0.value.usedAt < $1.value.usedAt }) else { return }
        accounts[oldest.key] = nil
    }
}
