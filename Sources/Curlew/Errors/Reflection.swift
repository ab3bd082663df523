// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Mirrors for `dump`, debuggers and test frameworks: they show the same as the descriptions, so that reflection reveals
// no secret and prints no large body byte by byte.

extension NetworkError: CustomReflectable {
    /// The description, with the same redaction.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Request: CustomReflectable {
    /// The redacted description and the size of the body.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description, "body": body.description], displayStyle: .struct)
    }
}

extension RequestBody: CustomReflectable, CustomStringConvertible {
    /// Whether there is a body, and its length, but never its content.
    public var description: String {
        let size = length.map { "\($0) bytes" } ?? "unknown length"
        return isNone ? "no body" : "a body of \(size)"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension HeaderFields: CustomReflectable {
    /// The fields, without the values of credentials.
    public var customMirror: Mirror {
        Mirror(self, unlabeledChildren: map(\.description), displayStyle: .collection)
    }
}

extension HeaderFields.Field: CustomReflectable {
    /// The redacted description.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension ResponseHead: CustomReflectable {
    /// Status and version, and the fields without credentials.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = ["description": description, "fields": fields.map(\.description)]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

extension Response: CustomReflectable {
    /// The head and the trailers, which redact themselves, the value, and the metrics.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = [
            "head": head, "value": value, "metrics": metrics, "trailers": trailers,
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

extension ResponseHead.RedirectHop: CustomReflectable {
    /// The redacted description, the head, which redacts itself, and the metrics.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = ["description": description, "head": head, "metrics": metrics]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

extension ByteChunk: CustomReflectable {
    /// The number of bytes, but never the bytes.
    public var customMirror: Mirror { Mirror(self, children: ["count": count], displayStyle: .struct) }
}
