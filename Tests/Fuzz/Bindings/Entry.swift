// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Fuzz: what parses bytes of strangers, fed with bytes nobody would write. Each target has a file with a function
// `examine`, compiled by Scripts/fuzz into one module with the sources it needs; the package does not see this folder.

/// What libFuzzer calls for each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func examineInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    examine(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

/// Ends the run with a reproducer unless a property holds.
///
/// - Parameters:
///   - property: What has to be true.
///   - message: What is wrong otherwise.
func demand(_ property: Bool, _ message: @autoclosure () -> String) {
    if property { return }
    fatalError(message())
}
