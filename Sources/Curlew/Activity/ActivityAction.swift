// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension ActivityMonitor {
    /// A closure that a monitor calls when it becomes active, and when it is no longer active.
    ///
    /// ```swift
    /// monitor.perform(
    ///     ActivityMonitor.Action { isActive in
    ///         await window.showIndicator(isActive)
    ///     })
    /// ```
    ///
    /// Predefined actions are ``serviceStatus(active:idle:)`` and, in `CurlewTerminal`, `spinner(to:label:)`. An action
    /// can be performed several times and for several monitors.
    public struct Action: Sendable {
        /// Makes the closure of one performance.
        let make: @Sendable () -> @Sendable (Bool) async -> Void

        /// Creates an action from a closure.
        ///
        /// - Parameter body: Receives whether the monitor is active. Each call runs in the task of
        ///   ``ActivityMonitor/perform(_:)``, outside of any actor.
        public init(_ body: @escaping @Sendable (_ isActive: Bool) async -> Void) { make = { body } }

        /// Creates an action that makes a closure with a state of its own for each performance.
        package init(making make: @escaping @Sendable () -> @Sendable (_ isActive: Bool) async -> Void) {
            self.make = make
        }
    }

    /// Calls an action in a new task, with the present value of ``isActive`` and after each change.
    ///
    /// The calls run one after the other; a slow action skips values that have changed back meanwhile. The task
    /// keeps the monitor until the task is cancelled. If the value of the last call was true, the cancelled task then
    /// calls the action with false; requests and waits in that call fail at once.
    ///
    /// - Parameter action: The action.
    /// - Returns: The task, whose cancellation stops the action.
    @discardableResult
    public func perform(_ action: Action) -> Task<Void, Never> {
        let body = action.make()
        return Task {
            var last: Bool?
            for await isActive in self {
                await body(isActive)
                last = isActive
            }
            if last == true { await body(false) }
        }
    }
}

extension ActivityMonitor.Action {
    /// Sends a status line to systemd, which `systemctl status` shows.
    ///
    /// The service needs `Type=notify`, or `NotifyAccess=main`. Outside of such a service, where `NOTIFY_SOCKET` is not
    /// set, the action sends nothing. It sends control characters, such as line breaks, as blanks, and at most 1024
    /// bytes of a status. A message that systemd cannot receive at once is dropped.
    ///
    /// - Parameters:
    ///   - active: The status while the monitor is active.
    ///   - idle: The status while the monitor is not active, and after the end of the action.
    /// - Returns: The action.
    public static func serviceStatus(active: String, idle: String) -> ActivityMonitor.Action {
        serviceStatus(active: active, idle: idle) { ServiceManager.current }
    }

    static func serviceStatus(
        active: String, idle: String, of manager: @escaping @Sendable () -> ServiceManager?
    ) -> ActivityMonitor.Action {
        ActivityMonitor.Action { isActive in manager()?.send(status: isActive ? active : idle) }
    }
}
