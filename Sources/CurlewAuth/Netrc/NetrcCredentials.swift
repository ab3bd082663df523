// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewEngine
internal import FoundationEssentials

/// Sends names and passwords from a `.netrc` file: Basic credentials (RFC 7617) for the request's host, with the first
/// request.
///
/// The file is read once, at the first request that needs it, on a disk thread. Without a file there are no
/// credentials; a file with an explicit path must exist. The first entry for the host applies, else `default`; ports
/// are ignored. An entry without login has no credentials, and an entry without password has an empty password. As with
/// curl, the permissions of the file are not checked, because mounted secrets are often readable by all users of a
/// container. Unlike with curl, passwords are sent only over TLS or to this machine: a request to an http URL of
/// another machine that the file names fails with `.invalidRequest`, unless `allowsPlainHTTP` is true. `Authorization`
/// and user-info of the request take precedence.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .netrc() }
/// ```
public struct NetrcCredentials: Authenticator {
    /// The path of the file; nil if it depends on an unknown home directory.
    public let path: String?
    /// Whether passwords are also sent without TLS, where others can read them.
    ///
    /// Passwords are sent to this machine (localhost, 127.0.0.0/8, ::1) in any case.
    public let allowsPlainHTTP: Bool
    /// Whether the caller has given a path, so that the file must exist.
    private let isNamed: Bool
    private let file = Lazy<NetrcFile>(keepsFailure: false)

    /// The maximum length of a file, in bytes.
    private static let limit = 1 << 20

    /// Creates an authenticator with the credentials of a file.
    ///
    /// - Parameters:
    ///   - path: The path of the file, with "~/" for the home directory; the value of the variable `NETRC` unless
    ///     given, else `~/.netrc`.
    ///   - allowsPlainHTTP: Whether passwords are also sent without TLS; false unless given.
    public init(path: String? = nil, allowsPlainHTTP: Bool = false) {
        let names = ["HOME", "NETRC"]
        let variables = names.compactMap { name in TrustEnvironment.variable(name).map { (name, $0) } }
        self.init(
            path: path, allowsPlainHTTP: allowsPlainHTTP, environment: Dictionary(uniqueKeysWithValues: variables))
    }

    init(path: String?, allowsPlainHTTP: Bool, environment: [String: String]) {
        let home = environment["HOME"].flatMap { $0.isEmpty ? nil : $0 }
        let named = path ?? environment["NETRC"].flatMap { $0.isEmpty ? nil : $0 } ?? "~/.netrc"
        isNamed = path != nil
        self.path = named.hasPrefix("~/") ? home.map { $0 + named.dropFirst() } : named
        self.allowsPlainHTTP = allowsPlainHTTP
    }

    /// Adds the credentials for the request's host and sends the request.
    ///
    /// Without `allowsPlainHTTP`, a request to an http URL does not use the `default` entry.
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the file cannot be read, when it is malformed (with the
    ///   cause ``InvalidNetrc``), when an entry cannot be expressed as Basic credentials, or when the file names the
    ///   host of an http URL and `allowsPlainHTTP` is false; otherwise the errors of `next`.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        let target = try request.target()
        guard let path, !request.fields.contains(.authorization), target.userInfo == nil
        else { return try await next(request) }
        let entries = try await context.cancellable {
            try await file.value { () async throws(NetworkError) in try await read(path) }
        }
        let host = HostName.key(target.host) ?? target.host
        guard let entry = entries.entry(where: { HostName.key($0) == host }), let login = entry.login
        else { return try await next(request) }
        // The `default` entry is no reason to refuse a request to this host.
        if entry.isDefault, !allowsPlainHTTP, target.isCleartext { return try await next(request) }
        try request.refusePlainHTTP(
            for: "Passwords of a .netrc file", unless: allowsPlainHTTP, option: ".netrc(allowsPlainHTTP: true)")
        var request = request
        do throws(Credential.Invalid) {
            request.fields[.authorization] = try Credential.basic(login, entry.password ?? "").fieldValue
        } catch {
            throw NetworkError(
                invalid: .credentials, "The entry for \(target.host) in \(path) cannot be used: \(error)",
                hint: "Check the entry in the file.", cause: error, request: request)
        }
        return try await next(request)
    }

    private func read(_ path: String) async throws(NetworkError) -> NetrcFile {
        let body = RequestBody.file(path)
        let bytes: [UInt8]?
        do throws(NetworkError) {
            bytes = !isNamed && body.isMissingFile ? [] : try await body.collected(upTo: Self.limit)
        } catch {
            let reason = error.cause.map { "\($0)" } ?? error.message
            throw Self.refused(
                "\(path) cannot be read: \(reason)", "Check its permissions, or give another path.", error.cause)
        }
        guard let bytes else {
            throw Self.refused(
                "\(path) has more than \(ByteCount(Int64(Self.limit))).", "It is probably not a .netrc file.")
        }
        do throws(InvalidNetrc) {
            return try NetrcFile(bytes)
        } catch {
            throw Self.refused(
                "\(path) is malformed. \(error)", "See netrc(5); put words with spaces in quotation marks.", error)
        }
    }

    private static func refused(_ message: String, _ hint: String, _ cause: (any Error)? = nil) -> NetworkError {
        NetworkError(invalid: .credentials, message, hint: hint, cause: cause)
    }
}

extension NetrcCredentials: CustomStringConvertible, CustomReflectable {
    /// The path, without the contents of the file.
    public var description: String { "NetrcCredentials(\((path ?? "no file").escapingControls))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Interceptor where Self == NetrcCredentials {
    /// Sends names and passwords from a `.netrc` file.
    ///
    /// - Parameters:
    ///   - path: The path of the file; the value of the variable `NETRC` unless given, else `~/.netrc`.
    ///   - allowsPlainHTTP: Whether passwords are also sent without TLS; false unless given.
    public static func netrc(_ path: String? = nil, allowsPlainHTTP: Bool = false) -> NetrcCredentials {
        NetrcCredentials(path: path, allowsPlainHTTP: allowsPlainHTTP)
    }
}
