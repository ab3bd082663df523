// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The contents of queries as parsed by other libraries.
enum QueryReading {
    /// Returns the names and values of each query in order, parsed by Python's `urllib.parse`.
    ///
    /// Encoded queries contain neither quotes nor backslashes, so they need no quoting in a script.
    static func byPython(_ queries: [String]) async throws -> [[[String]]] {
        try await pairs(queries) {
            """
            from urllib.parse import parse_qsl
            def read(query):
                return parse_qsl(query, keep_blank_values=True, strict_parsing=False, encoding='utf-8', errors='strict')
            """
        }
    }

    /// Returns the names and values of each query, parsed by Werkzeug as the query of a GET and as the form of a POST.
    ///
    /// Both results must be equal.
    static func byWerkzeug(_ queries: [String]) async throws -> [[[String]]] {
        try await pairs(queries) {
            """
            import io
            from werkzeug.wrappers import Request
            def read(query):
                get = Request({'REQUEST_METHOD': 'GET', 'QUERY_STRING': query})
                post = Request({
                    'REQUEST_METHOD': 'POST', 'QUERY_STRING': '', 'CONTENT_TYPE': 'application/x-www-form-urlencoded',
                    'CONTENT_LENGTH': str(len(query)), 'wsgi.input': io.BytesIO(query.encode())})
                assert list(get.args.lists()) == list(post.form.lists())
                return list(get.args.items(multi=True))
            """
        }
    }

    private static func pairs(_ queries: [String], _ reader: () -> String) async throws -> [[[String]]] {
        guard let list = String(data: try JSONEncoder().encode(queries), encoding: .utf8) else { return [] }
        let script =
            reader() + """

                import json
                queries = json.loads(r'''\(list)''')
                print(json.dumps([[[name, value] for name, value in read(query)] for query in queries]))
                """
        let output = try await ShellCommand.output(script, shell: "python3")
        return try JSONDecoder().decode([[[String]]].self, from: output)
    }
}
