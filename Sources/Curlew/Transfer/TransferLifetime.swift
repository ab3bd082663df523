// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The lifetime of a transfer: every public holder (a `Transfer`, a sequence, an iterator) has a reference to it.
///
/// When the last holder is released, an unfinished transfer is cancelled, unless it was started with `start()` and is
/// not paused: a paused transfer could never be resumed. The run cannot be this object, because the engine and the
/// chain hold the run while they work.
final class TransferLifetime: Sendable {
    let run: TransferRun

    init(_ run: TransferRun) { self.run = run }

    deinit { run.drop() }
}

extension TransferLifetime: CustomReflectable {
    /// The request alone.
    var customMirror: Mirror { Mirror(self, children: ["request": run.request.description]) }
}
