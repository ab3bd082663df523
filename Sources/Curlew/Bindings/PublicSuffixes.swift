// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The public suffix list (publicsuffix.org), from libpsl, loaded at run time.
///
/// On most distributions libcurl itself is linked with the same library.
struct PublicSuffixes: Sendable {
    private typealias Open = @convention(c) (UnsafePointer<CChar>?) -> OpaquePointer?
    private typealias Ask = @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>, CInt) -> CInt

    private typealias Find = @convention(c) @Sendable (OpaquePointer?, UnsafePointer<CChar>) -> UnsafePointer<CChar>?

    private let ask: Ask
    private let find: Find
    /// Safe because libpsl never changes a loaded list, and this list stays loaded until the process ends.
    private nonisolated(unsafe) let list: OpaquePointer

    /// The machine's list, loaded once; nil when libpsl is not installed or has no list.
    static let system: PublicSuffixes? = {
        defer { loaded.withLock { $0 = true } }
        return PublicSuffixes(library: "libpsl.so.5")
    }()

    private static let loaded = Lock(false)

    /// Whether `system` is loaded; until then, its first use reads a file.
    static var isLoaded: Bool { loaded.withLock(\.self) }

    /// Opens a library by its soname and reads the newest list available: libpsl's own or that of the distribution.
    init?(library: String) {
        guard let symbols = LibrarySymbols(library),
            let open: Open = symbols.function("psl_latest"), let ask: Ask = symbols.function("psl_is_public_suffix2"),
            let find: Find = symbols.function("psl_registrable_domain"),
            let list = open(nil)
        else { return nil }
        self.ask = ask
        self.find = find
        self.list = list
    }

    /// Whether a domain, given as an A-label in lower case, is a suffix below which a registry registers names for the
    /// public.
    ///
    /// The suffixes of companies (`github.io`) do not count: the companies hold certificates for them. Every top-level
    /// domain counts.
    func contains(_ domain: String) -> Bool { contains(domain, in: 1) }

    /// Whether domains below a domain, given as an A-label in lower case, belong to different owners, so that a cookie
    /// must not reach all of them.
    ///
    /// The suffixes of companies (`github.io`) and every top-level domain count.
    func separatesOwners(_ domain: String) -> Bool { contains(domain, in: 3) }

    /// Returns the part of a domain, given as an A-label in lower case, that one owner has registered: the public
    /// suffix and the label before it.
    ///
    /// - Returns: The registrable domain; nil for a public suffix.
    func registrableDomain(of domain: String) -> String? {
        // libpsl returns a pointer into the given text.
        Self.withoutFinalDot(domain).withCString { find(list, $0).map { String(cString: $0) } }
    }

    /// - Parameter parts: The parts of the list: 1 for registries, 2 for companies, or their sum.
    private func contains(_ domain: String, in parts: CInt) -> Bool {
        Self.withoutFinalDot(domain).withCString { ask(list, $0, parts) } == 1
    }

    /// Returns a domain as libpsl expects it: "co.uk." is the same domain as "co.uk".
    private static func withoutFinalDot(_ domain: String) -> String {
        domain.utf8.last == UInt8(ascii: ".") ? String(domain.dropLast()) : domain
    }
}

extension PublicSuffixes? {
    /// Whether a domain is a public suffix; without a list, whether it has a single label.
    func contains(_ domain: String) -> Bool { self?.contains(domain) ?? !domain.utf8.contains(UInt8(ascii: ".")) }
}
