// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Converts international host names to A-labels (RFC 5890) by libidn2, loaded at run time.
///
/// libcurl itself is linked with the same library. Curlew opens it, because libcurl's own conversion requires a UTF-8
/// locale of the process, and this conversion does not.
package struct InternationalNames: Sendable {
    /// The reason why a name is invalid, in libidn2's words.
    package struct Refusal: Error {
        package let message: String
    }

    private typealias Convert =
        @convention(c) @Sendable (
            UnsafePointer<CChar>, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, CInt
        ) -> CInt
    private typealias Release = @convention(c) @Sendable (UnsafeMutableRawPointer?) -> Void
    private typealias Explain = @convention(c) @Sendable (CInt) -> UnsafePointer<CChar>

    private let convert: Convert
    private let release: Release
    private let explain: Explain

    /// The machine's libidn2, opened once; nil when it is not installed.
    package static let system = InternationalNames(library: "libidn2.so.0")

    /// Opens a library by its soname; nil when it or one of its three functions is missing.
    ///
    /// The library stays open until the process ends.
    package init?(library: String) {
        guard let handle = dlopen(library, RTLD_NOW | RTLD_LOCAL),
            let convert = dlsym(handle, "idn2_to_ascii_8z"),
            let release = dlsym(handle, "idn2_free"),
            let explain = dlsym(handle, "idn2_strerror")
        else { return nil }
        self.convert = unsafeBitCast(convert, to: Convert.self)
        self.release = unsafeBitCast(release, to: Release.self)
        self.explain = unsafeBitCast(explain, to: Explain.self)
    }

    /// Returns the name with every label in ASCII, mapped by UTS #46 without its transitional exceptions.
    package func ascii(_ name: String) throws(Refusal) -> String {
        let (composeInput, nonTransitional): (CInt, CInt) = (1, 8)
        var output: UnsafeMutablePointer<CChar>?
        let code = name.withCString { convert($0, &output, composeInput | nonTransitional) }
        defer { release(output) }
        guard code == 0, let output else {
            throw Refusal(message: String(cString: explain(code)))
        }
        return String(cString: output)
    }
}
