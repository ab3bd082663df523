// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

// Snippets of the doc comments about queries and credentials, word for word; parameters provide the values that a
// snippet assumes.

@Suite struct QuerySnippets {
    @Test func queryEncoderSnippetEncodesAValue() throws {
        struct Search: Encodable { var text: String, tags: [String], near: [String: Double] }
        let search = Search(text: "tea & cake", tags: ["b", "a"], near: ["lat": 48.2])
        let query = try Request.QueryEncoder().encode(search)
        // near%5Blat%5D=48.2&tags%5B%5D=b&tags%5B%5D=a&text=tea%20%26%20cake
        let spaced = try Request.QueryEncoder(arrays: .commaJoined, nesting: .dots, spaces: .plus).encode(search)
        // near.lat=48.2&tags=b,a&text=tea+%26+cake
        #expect(query == "near%5Blat%5D=48.2&tags%5B%5D=b&tags%5B%5D=a&text=tea%20%26%20cake")
        #expect(spaced == "near.lat=48.2&tags=b,a&text=tea+%26+cake")
    }

    @Test(arguments: ["tea"]) func querySnippetEncodesPairs(_ term: String) throws {
        var query: Request.Query = ["q": term, "page": 2, "tags": ["new", "used"], "seller": nil]
        query.append("q", "and this")
        let text = try query.merging(.percentEncoded("raw=%2F")).text(Request.QueryEncoder())
        #expect(text == "page=2&q=tea&q=and%20this&seller&tags%5B%5D=new&tags%5B%5D=used&raw=%2F")
    }

    @Test(arguments: [("secret", "token")])
    func credentialSnippetSetsAuthorization(_ password: String, _ token: String) throws {
        var request: Request = "https://h/"
        request.fields[.authorization] = try Credential.basic("anna", password).fieldValue
        request.fields[.authorization] = Credential.bearer(token).fieldValue
        let api = Client("https://api.example.com").with { $0.fields = [.authorization: Credential.bearer(token)] }
        #expect(request.fields[.authorization] == "Bearer token" && api.fields == ["Authorization": "Bearer token"])
    }

    @Test func invalidCredentialSnippetCatchesTheError() throws {
        let (user, password) = ("anna:", "secret")
        var credential: Credential?
        do {
            credential = try .basic(user, password)
        } catch Credential.Invalid.colonInUser {
            print("A user name has no colon.")
        }
        #expect(credential == nil)
    }
}
