// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// What `dump`, debuggers and test frameworks see by looking into values: the same as the descriptions show, so that no
// secret gets out by reflection, and no large body is printed byte by byte.

extension NetworkError: CustomReflectable {
    /// The description's facts, redacted alike.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Request: CustomReflectable {
    /// The redacted description and the size of the body.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description, "body": body.description], displayStyle: .struct)
    }
}

extension RequestBody: CustomReflectable, CustomStringConvertible {
    /// What kind of body it is and how long, never what it holds.
    public var description: String {
        let size = length.map { "\($0) bytes" } ?? "unknown length"
        return isNone ? "no body" : "a body of \(size)"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension HeaderFields: CustomReflectable {
    /// The fields, those that carry credentials without their values.
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

extension RedirectHop: CustomReflectable {
    /// The redacted description, and the head as it shows itself.
    public var customMirror: Mirror {
        let children: KeyValuePairs<String, Any> = ["description": description, "head": head, "metrics": metrics]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

extension ByteChunk: CustomReflectable {
    /// How many bytes, never which.
    public var customMirror: Mirror { Mirror(self, children: ["count": count], displayStyle: .struct) }
}
