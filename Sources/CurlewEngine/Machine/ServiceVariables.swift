// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The environment variables with which systemd names the path that a service watches for memory pressure
/// (https://systemd.io/MEMORY_PRESSURE).
enum ServiceVariables: Sendable, Equatable {
    /// The service manager has set no variables.
    case unset
    /// The service manager has switched watching off.
    case off
    /// Open the path, write the bytes, and watch it.
    case watch(path: String, bytes: [UInt8])
    /// The variables have no valid values.
    case invalid(String)

    /// Interprets the variables.
    ///
    /// - Parameter variable: Returns the value of a variable; nil if it is unset.
    init(_ variable: (String) -> String?) {
        switch variable("MEMORY_PRESSURE_WATCH") {
        case nil, "": self = .unset
        case "/dev/null": self = .off
        case let path? where !path.hasPrefix("/"): self = .invalid("MEMORY_PRESSURE_WATCH: the path is relative")
        case let path?:
            guard let bytes = Self.base64(variable("MEMORY_PRESSURE_WRITE") ?? "") else {
                self = .invalid("MEMORY_PRESSURE_WRITE: the value is not Base64")
                return
            }
            self = .watch(path: path, bytes: bytes)
        }
    }

    /// Decodes Base64 with padding (RFC 4648 §4); nil for other texts.
    static func base64(_ text: String) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count.isMultiple(of: 4) else { return nil }
        let padding = characters.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding <= 2 else { return nil }
        var (bytes, bits, count) = ([UInt8](), UInt32(0), 0)
        for character in characters.dropLast(padding) {
            guard let digit = digit(character) else { return nil }
            (bits, count) = (bits << 6 | digit, count + 6)
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }

    private static func digit(_ character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
