// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The public suffix list (publicsuffix.org), through libpsl, found at run time.
///
/// The library is the one that libcurl itself is linked with on most distributions.
struct PublicSuffixes: Sendable {
    private typealias Open = @convention(c) (UnsafePointer<CChar>?) -> OpaquePointer?
    private typealias Ask = @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>, CInt) -> CInt

    private let ask: Ask
    /// Safe because libpsl never changes a list once it is loaded; this one stays for the life of the process.
    private nonisolated(unsafe) let list: OpaquePointer

    /// The list of this machine, read once; nil when libpsl is not installed or has no list.
    static let system = PublicSuffixes(library: "libpsl.so.5")

    /// Opens a library by its soname and reads the newest list that it knows: its own or the one of the distribution.
    init?(library: String) {
        guard let symbols = LibrarySymbols(library),
            let open: Open = symbols.function("psl_latest"), let ask: Ask = symbols.function("psl_is_public_suffix2"),
            let list = open(nil)
        else { return nil }
        self.ask = ask
        self.list = list
    }

    /// Whether a registry lets anyone register names right below a domain, an A-label in lower case.
    ///
    /// The suffixes of companies (`github.io`) do not count: these hold certificates for them. Every top-level domain does.
    func contains(_ domain: String) -> Bool {
        let registries: CInt = 1
        return domain.withCString { ask(list, $0, registries) } == 1
    }
}

extension PublicSuffixes? {
    /// Whether a domain is a public suffix; without a list, whether it has a single label.
    func contains(_ domain: String) -> Bool { self?.contains(domain) ?? !domain.utf8.contains(UInt8(ascii: ".")) }
}
