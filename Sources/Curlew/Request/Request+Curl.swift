// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// This request as a command for curl(1), with "<redacted>" in place of everything that may be secret.
    ///
    /// The command omits credentials in fields, user-info, values of the query and bodies; see
    /// ``curlDescription(showingSecrets:)`` for the rest.
    ///
    /// ```swift
    /// print(request.curlDescription)
    /// // curl 'https://api.example.com/photos?page=<redacted>' \
    /// //   --header 'Accept: application/json' \
    /// //   --compressed
    /// ```
    public var curlDescription: String { curlDescription(showingSecrets: false) }

    /// Returns this request as a command for curl(1), one option on each line, to be run in a shell.
    ///
    /// With secrets, the command sends the request's method, URL, fields, body and timeouts. Streams and descriptors
    /// are read from standard input, files from their paths. A `printf` in front of curl writes bodies that are not
    /// plain text or are too long for an argument. The command omits settings of the session (its fields, so
    /// `User-Agent`, and its trust), redirects, and the compression of bodies.
    ///
    /// Words are quoted for any POSIX shell. Only tabs and bidirectional controls in fields, control characters in the
    /// path of a file, and the parts that make a request invalid are written as `$'…'`, which bash, zsh, ksh, busybox
    /// and POSIX.1-2024 support, and dash does not.
    /// - Parameter showingSecrets: Whether the text contains credentials and bodies; every reader of the text then sees
    ///   them.
    public func curlDescription(showingSecrets: Bool) -> String {
        CurlCommand(self, showsSecrets: showingSecrets).text
    }
}

/// Builds a command line for curl(1) from a request.
private struct CurlCommand {
    private let request: Request
    private let showsSecrets: Bool
    private var input: String?
    private var options: [String] = []

    init(_ request: Request, showsSecrets: Bool) {
        self.request = request
        self.showsSecrets = showsSecrets
        addURL()
        addFields()
        addBody()
        addTimeouts()
    }

    var text: String {
        (input.map { "\($0) | " } ?? "") + "curl " + options.joined(separator: " \\\n  ")
    }

    private mutating func add(_ option: String, _ value: String? = nil, keepsLines: Bool = false) {
        options.append(option + (value.map { " " + ShellWord.quoted($0, keepsLines: keepsLines) } ?? ""))
    }

    private mutating func addURL() {
        let target = try? RequestTarget(request.url)
        let whole = target?.text ?? request.url
        let shown = showsSecrets ? whole : redactedURL(whole)
        // curl never parses the argument of an option as an option, even if it begins with a hyphen.
        if target == nil { add("--url", shown) } else { options.append(ShellWord.quoted(shown)) }
        if shown.utf8.contains(where: ByteSet("[]{}").contains) { add("--globoff") }
        if request.method == .head, request.body.isNone {
            add("--head")
        } else if request.method != .get || !request.body.isNone {
            add("--request", request.method.rawValue)
        }
        if request.options.connection == .own { add("--http1.1") }
        if let path = request.options.unixSocket {
            let isAbstract = path.hasPrefix("@")
            add(isAbstract ? "--abstract-unix-socket" : "--unix-socket", isAbstract ? String(path.dropFirst()) : path)
        }
        switch request.options.proxy.rule {
        case .none: add("--noproxy", "*")
        case .always(let proxy, let exceptions):
            add("--proxy", proxy.url)
            if !exceptions.text.isEmpty { add("--noproxy", exceptions.text) }
        case .inherited, .environment, .changedEnvironment, .custom: break
        }
        // curl would remove dot segments.
        if request.url.contains("/.") { add("--path-as-is") }
    }

    private mutating func addFields() {
        for field in showsSecrets ? request.fields : request.fields.redacted() {
            let value = Self.trimmed(field.value)
            // In curl's grammar "Name:" removes a field and "Name;" sends an empty one.
            add("--header", value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
        }
        guard request.options.decompression != .off else { return }
        if request.fields.contains(.range), !request.fields.contains(.acceptEncoding) {
            add("--header", "Accept-Encoding: identity")
        } else {
            add("--compressed")
        }
    }

    /// Returns a value without the spaces and tabs around it, as it is sent.
    private static func trimmed(_ value: String) -> String {
        let scalars = value.unicodeScalars
        guard let first = scalars.firstIndex(where: { $0 != " " && $0 != "\t" }),
            let last = scalars.lastIndex(where: { $0 != " " && $0 != "\t" })
        else { return "" }
        return String(scalars[first...last])
    }

    private mutating func addTimeouts() {
        let timeouts = request.options.timeouts
        if timeouts.sets(.connect), let seconds = Self.seconds(timeouts.connect) { add("--connect-timeout", seconds) }
        if let seconds = timeouts.total.flatMap(Self.seconds) { add("--max-time", seconds) }
    }

    /// Returns seconds with up to three decimals, rounded up; nil for durations that curl rejects: zero, negative,
    /// decades.
    private static func seconds(_ duration: Duration) -> String? {
        guard duration > .zero, duration < .seconds(Duration.maximumAccepted) else { return nil }
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let rest = milliseconds % 1000
        guard rest > 0 else { return "\(milliseconds / 1000)" }
        return "\(milliseconds / 1000)." + String("\(1000 + rest)".dropFirst())
    }
}

extension CurlCommand {
    /// Half of the maximum length of one argument on Linux.
    private static let longestArgument = 64 << 10

    private mutating func addBody() {
        switch request.body.source?.shellInput {
        case nil:
            // These methods send an empty body with `Content-Length: 0` (RFC 9110 §8.6).
            if [.post, .put, .patch].contains(request.method) { addData("--data-binary", "") }
        case .bytes(let bytes) where showsSecrets: addBytes(bytes)
        case .bytes(let bytes): addData("--data-binary", "<redacted: \(ByteCount(Int64(bytes.count)))>")
        case .file(let path) where showsSecrets: addData("--data-binary", path == "-" ? "@./-" : "@" + path)
        case .file: addData("--data-binary", "<redacted: a file>")
        case .standardInput(let isLengthKnown): addInput(hasLength: isLengthKnown)
        case .sequence(let inputs, _) where showsSecrets: addSequence(inputs)
        case .sequence(_, let length):
            addData("--data-binary", "<redacted: \(length.map { "\(ByteCount($0))" } ?? "several pieces")>")
        }
        guard !request.body.isNone, let waits = waitsForContinue, !request.fields.contains(.expect) else { return }
        add("--header", waits ? "Expect: 100-continue" : "Expect:")
    }

    private mutating func addBytes(_ bytes: [UInt8]) {
        let text = bytes.count <= Self.longestArgument ? String(validating: bytes, as: UTF8.self) : nil
        if let text, text.unicodeScalars.allSatisfy({ !String.needsEscape($0) || $0 == "\n" }) {
            addData(bytes.first == UInt8(ascii: "@") ? "--data-raw" : "--data-binary", text)
        } else {
            input = "printf \(ShellWord.printfFormat(bytes))"
            addData("--data-binary", "@-")
        }
    }

    /// Adds commands that write the inputs one after the other; streams and descriptors read standard input there.
    private mutating func addSequence(_ inputs: [ShellInput]) {
        var commands: [String] = []
        var isLengthKnown = true
        for part in inputs {
            switch part {
            case .bytes(let bytes): commands.append("printf \(ShellWord.printfFormat(bytes))")
            case .file(let path): commands.append("cat -- \(ShellWord.quoted(path))")
            case .standardInput(let hasLength):
                commands.append("cat")
                isLengthKnown = isLengthKnown && hasLength
            case .sequence: commands.append("cat")
            }
        }
        input = "{ \(commands.joined(separator: "; ")); }"
        addInput(hasLength: isLengthKnown)
    }

    /// Adds standard input as the body, with or without a declared length.
    ///
    /// With a length curl reads all input first; without one it sends chunks as they arrive.
    private mutating func addInput(hasLength: Bool) {
        if hasLength { addData("--data-binary", "@-") } else { add("--upload-file", "-") }
    }

    private mutating func addData(_ option: String, _ value: String) {
        add(option, value, keepsLines: showsSecrets)
        // Without a content type curl adds that of a form.
        if !request.fields.contains(.contentType) { add("--header", "Content-Type:") }
    }

    /// Whether the request's own option makes its body wait; nil without that option: the session's rule then applies,
    /// which curl follows by itself.
    private var waitsForContinue: Bool? {
        guard let policy = request.options.expectContinue else { return nil }
        guard let threshold = policy.threshold else { return false }
        let length = request.body.length ?? .max
        return length > 0 && length >= threshold.bytes
    }
}
