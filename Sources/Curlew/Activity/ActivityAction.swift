// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension ActivityMonitor {
    /// Something to do when a monitor becomes active or stops being active.
    ///
    /// ```swift
    /// monitor.perform(
    ///     ActivityMonitor.Action { isActive in
    ///         await window.showIndicator(isActive)
    ///     })
    /// ```
    ///
    /// Ready actions are ``serviceStatus(active:idle:)`` and, in `CurlewTerminal`, `spinner(to:label:)`. An action can
    /// be performed several times and for several monitors.
    public struct Action: Sendable {
        /// Makes the closure of one performance.
        let make: @Sendable () -> @Sendable (Bool) async -> Void

        /// Creates an action from a closure.
        ///
        /// - Parameter body: Called with true when the monitor becomes active, else with false.
        public init(_ body: @escaping @Sendable (_ isActive: Bool) async -> Void) { make = { body } }

        /// Creates an action whose performances each have a closure with a state of its own.
        package init(making make: @escaping @Sendable () -> @Sendable (_ isActive: Bool) async -> Void) {
            self.make = make
        }
    }

    /// Performs an action for the present value and after each change, in a task.
    ///
    /// The calls run one after the other; a slow action skips values that have changed back meanwhile. The task
    /// keeps the monitor until it is cancelled; if the last call was for an active monitor, the action is then called
    /// once more with false.
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
    /// set, nothing is sent. Line breaks are sent as blanks, and a text is cut after 1024 bytes. A message that systemd
    /// cannot receive at once is dropped.
    ///
    /// - Parameters:
    ///   - active: The status while the monitor is active.
    ///   - idle: The status while the monitor is not active, also the one that is left at the end.
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
