// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The body of a form: its pieces, and the part to which each piece belongs.
struct MultipartLayout: Sendable {
    /// The whole body; nested bodies are split into their pieces.
    let body: RequestBody
    /// The index of the part whose content each piece is; nil for the delimiters and fields between the contents.
    private let partIndices: [Int?]
    private let joined: JoinedBody

    init(_ parts: [MultipartForm.Part], _ boundary: MultipartForm.Boundary) {
        var pieces: [JoinedBody.Piece] = []
        var partIndices: [Int?] = []
        for (index, part) in parts.enumerated() {
            let start = "\(index == 0 ? "" : "\r\n")--\(boundary.text)\r\n\(Self.lines(part.fields))\r\n"
            pieces.append(JoinedBody.Piece(body: .text(start), label: nil))
            partIndices.append(nil)
            let whole = JoinedBody.Piece(body: part.body.isNone ? .bytes([]) : part.body, label: part.label(at: index))
            let content = whole.flattenedPieces
            pieces += content
            partIndices += content.map { _ in index }
        }
        pieces.append(JoinedBody.Piece(body: .text("\r\n--\(boundary.text)--\r\n"), label: nil))
        partIndices.append(nil)
        joined = JoinedBody(pieces, flaw: Self.flaw(of: parts))
        body = RequestBody(source: joined)
        self.partIndices = partIndices
    }

    private static func lines(_ fields: HeaderFields) -> String {
        fields.reduce(into: "") { lines, field in lines += "\(field.name.rawValue): \(field.value)\r\n" }
    }

    private static func flaw(of parts: [MultipartForm.Part]) -> JoinedBody.Flaw? {
        if parts.isEmpty {
            return JoinedBody.Flaw(
                message: "The multipart form has no parts.",
                hint: "A multipart body needs at least one part (RFC 2046 §5.1.1): add a part, or remove the body.")
        }
        for (index, part) in parts.enumerated() {
            if let flaw = part.flaw(at: index) { return flaw }
        }
        return nil
    }

    /// Returns the progress of each part after the body has sent the given number of bytes.
    func progress(sent: Int64, _ parts: [MultipartForm.Part]) -> [MultipartForm.PartProgress] {
        let knownLengths = joined.knownLengths
        let lengths = knownLengths.isEmpty ? joined.pieces.map(\.body.length) : knownLengths
        var states = parts.map { _ in (sent: Int64(0), total: Int64?.some(0), isFinished: true) }
        var left: Int64? = sent
        for (partIndex, length) in zip(partIndices, lengths) {
            // A piece starts only after the piece before it has ended.
            let own = min(left ?? 0, length ?? .max)
            let isWhole = left != nil && own == length
            if let partIndex {
                states[partIndex].sent += own
                states[partIndex].total = length.flatMap {
                    states[partIndex].total?.addingReportingOverflow($0).partialValue
                }
                states[partIndex].isFinished = states[partIndex].isFinished && isWhole
            }
            left = isWhole ? left.map { $0 - own } : nil
        }
        return states.enumerated().map { index, state in
            MultipartForm.PartProgress(
                index: index, name: parts[index].name, sent: state.sent, total: state.total,
                isFinished: state.isFinished)
        }
    }
}

extension MultipartForm.Part {
    /// Returns the reason why the part cannot be sent; nil if it can.
    fileprivate func flaw(at index: Int) -> JoinedBody.Flaw? {
        let label = label(at: index)
        for field in fields {
            guard field.name.isValid else {
                return JoinedBody.Flaw(
                    message: "The field name “\(field.name.rawValue.escapingControls)” of \(label) is not a token.",
                    hint: "A field name has no spaces, colons or control characters (RFC 9110 §5.1).")
            }
            guard HeaderFields.isValidValue(field.value) else {
                return JoinedBody.Flaw(
                    message: "The field “\(field.name)” of \(label) contains a control character.",
                    hint: "Remove the control character; only line breaks in names and file names are escaped.")
            }
        }
        if let length = body.length, length < 0 {
            return JoinedBody.Flaw(
                message: "The length of \(label) is negative.", hint: "Leave the length out if it is unknown.")
        }
        return body.flaw
    }
}
