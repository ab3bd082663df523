// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The error for a text that is not a URL of a request.
package struct InvalidURL: Error, Hashable, CustomStringConvertible {
    /// The text, redacted.
    package let text: String
    /// The reason why the text is invalid.
    package let reason: Reason

    /// Creates an error that keeps only the redacted form of `text`.
    package init(text: String, reason: Reason) {
        self.text = redactedURL(text)
        self.reason = reason
    }

    package var description: String {
        text.isEmpty ? reason.description : "“\(text)” is not a valid URL: \(reason)"
    }

    /// The reasons why a URL is invalid.
    package enum Reason: Error, Hashable, CustomStringConvertible {
        case empty
        case noScheme
        case unsupportedScheme(String)
        case noHost
        case controlCharacter
        case percentEscapeInHost
        case forbiddenInHost(Character)
        case forbiddenInUserInfo
        case emptyLabel
        case labelTooLong
        case nameTooLong
        case invalidIPv4
        case invalidIPv6
        case invalidPort
        case namesLibraryMissing
        case nameRefused(String)

        package var description: String {
            switch self {
            case .empty: "the URL is empty"
            case .noScheme: "it does not start with http:// or https://"
            case .unsupportedScheme(let name): "its scheme is “\(name.escapingControls)”, not http or https"
            case .noHost: "it has no host"
            case .controlCharacter: "it contains a control character"
            case .percentEscapeInHost: "its host contains a percent escape"
            case .forbiddenInHost(let character): "its host contains “\(String(character).escapingControls)”"
            case .forbiddenInUserInfo: "its user-info contains a backslash"
            case .emptyLabel: "its host has an empty label"
            case .labelTooLong: "its host has a label of more than 63 characters"
            case .nameTooLong: "its host is longer than 253 characters"
            case .invalidIPv4: "its host ends in a number but is not an IPv4 address of four decimal numbers"
            case .invalidIPv6: "its host is not an IPv6 address"
            case .invalidPort: "its port is not a number from 1 to 65535"
            case .namesLibraryMissing: "its host is not ASCII, and the library libidn2 was not found to encode it"
            case .nameRefused(let why): "its host is not a valid international name (\(why))"
            }
        }
    }
}
