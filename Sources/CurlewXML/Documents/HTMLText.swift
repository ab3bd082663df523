// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension XMLNode {
    /// The node as HTML text, by the algorithm of the HTML standard (§13.3).
    ///
    /// Void elements such as `<br>` have no end tag, and the text of `<script>` and `<style>` is not escaped. The text
    /// is correct for nodes of an ``HTMLDocument``; for nodes of an ``XMLDocument`` see ``xml``. It may not be safe in
    /// another page: it contains the scripts of this page.
    public var html: String {
        var output = kind == .document ? "<!DOCTYPE html>" : ""
        var parents: [(name: String, rest: ArraySlice<XMLNode>)] = [("", [self])]
        // The loop keeps its own stack, so the depth of the tree needs no stack of calls.
        while let (name, rest) = parents.last {
            guard let node = rest.first else {
                parents.removeLast()
                if !name.isEmpty { output += "</\(name)>" }
                continue
            }
            parents[parents.count - 1].rest = rest.dropFirst()
            if let (name, children) = node.open(in: name, &output) { parents.append((name, children[...])) }
        }
        return output
    }

    /// Appends a leaf or a start tag.
    ///
    /// - Returns: The name and the children, if an end tag has to follow; the document's name is empty.
    private func open(in parent: String, _ output: inout String) -> (String, [XMLNode])? {
        switch kind {
        case .document: return ("", children)
        case .element:
            let name = name?.qualified ?? ""
            output += "<\(name)"
            for attribute in attributes {
                output += " \(attribute.name.qualified)=\""
                escape(attribute.value, isAttribute: true, &output)
                output += "\""
            }
            output += ">"
            return Self.voidNames.contains(name) ? nil : (name, children)
        case .attribute: output += "\(name?.qualified ?? "")=\"" + escaped(text, isAttribute: true) + "\""
        case .text, .cdata:
            let parent = parent.isEmpty ? self.parent?.name?.local ?? "" : parent
            output += Self.rawNames.contains(parent) ? text : escaped(text, isAttribute: false)
        case .comment: output += "<!--\(text)-->"
        case .processingInstruction: output += "<?\(name?.local ?? "") \(text)>"
        }
        return nil
    }

    private func escaped(_ text: String, isAttribute: Bool) -> String {
        var output = ""
        escape(text, isAttribute: isAttribute, &output)
        return output
    }

    /// Appends an escaped text (HTML §13.3, "escaping a string").
    private func escape(_ text: String, isAttribute: Bool, _ output: inout String) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var last: UInt8 = 0
        for byte in text.utf8 {
            switch byte {
            case 0x26: bytes += "&amp;".utf8
            case 0x3C: bytes += "&lt;".utf8
            case 0x3E: bytes += "&gt;".utf8
            case 0x22 where isAttribute: bytes += "&quot;".utf8
            case 0xA0 where last == 0xC2:
                bytes.removeLast()
                bytes += "&nbsp;".utf8
            default: bytes.append(byte)
            }
            last = byte
        }
        output += String(decoding: bytes, as: UTF8.self)
    }

    /// Elements that have no end tag.
    private static let voidNames: Set<String> = [
        "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link",
        "meta", "param", "source", "track", "wbr",
    ]

    /// Elements whose text is not escaped.
    ///
    /// libxml2 reads the other such elements of the standard as markup.
    private static let rawNames: Set<String> = ["script", "style"]
}
