// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Turns international host names into A-labels (RFC 5890) through libidn2, found at run time.
///
/// The library is the one libcurl itself is linked with; it is opened here because libcurl's own conversion needs the
/// process to have set a UTF-8 locale, and this one does not.
struct InternationalNames: Sendable {
    /// Why a name was refused, in libidn2's words.
    struct Refusal: Error {
        let message: String
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

    /// The libidn2 of this machine, opened once; nil when it is not installed.
    static let system = InternationalNames(library: "libidn2.so.0")

    /// Opens a library by its soname and keeps it open for the life of the process; nil when it or one of its three
    /// functions is missing.
    init?(library: String) {
        guard let handle = dlopen(library, RTLD_NOW | RTLD_LOCAL),
            let convert = dlsym(handle, "idn2_to_ascii_8z"),
            let release = dlsym(handle, "idn2_free"),
            let explain = dlsym(handle, "idn2_strerror")
        else { return nil }
        self.convert = unsafeBitCast(convert, to: Convert.self)
        self.release = unsafeBitCast(release, to: Release.self)
        self.explain = unsafeBitCast(explain, to: Explain.self)
    }

    /// The name with every label in ASCII, mapped as UTS #46 does without its transitional exceptions.
    func ascii(_ name: String) throws(Refusal) -> String {
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
