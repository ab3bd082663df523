// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Fuzz: the parsers of untrusted bytes, fed with random bytes. Each target has a file with a function `examine`.
// Scripts/fuzz compiles it with the sources that it needs into one module; the package does not include this folder.

/// The function that libFuzzer calls for each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func examineInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    examine(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

/// Ends the run with a reproducer unless a property holds.
///
/// - Parameters:
///   - property: The condition that must be true.
///   - message: The description of the failure.
func demand(_ property: Bool, _ message: @autoclosure () -> String) {
    if property { return }
    fatalError(message())
}
