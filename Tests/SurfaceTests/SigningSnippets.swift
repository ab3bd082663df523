// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewAuth
import FoundationEssentials

// The documentation's snippets about signatures and stored credentials, so that they are known to compile.

private func digestValues(secret: String, body: Data, received: String) throws {
    let expected = try DigestValue.hmac(key: secret.utf8, of: body)
    let isGenuine = DigestValue(hexadecimal: received) == expected
    _ = isGenuine
}

private func hmac(secret: [UInt8], receivedField: String, receivedBody: Data) {
    let hooks = HMACSignature(key: secret, field: "X-Hub-Signature-256", prefix: "sha256=")
    let api = Client("https://example.com/hooks").with { $0.auth = hooks }
    let isGenuine = hooks.isValid(receivedField, of: receivedBody)
    _ = (api, isGenuine)
}

private func signing(secret: [UInt8]) {
    let webhooks = Client("https://example.com/hooks").with {
        $0.auth = .signing { _, body, _ in
            let time = Int(Date().timeIntervalSince1970)
            let code = try await body.hmac(key: secret, after: "\(time).")
            return ["Example-Signature": "t=\(time),v1=\(code.hexadecimal)"]
        }
    }
    _ = webhooks
}

private func amazon(id: String, secret: String) async throws {
    let credentials = AWSCredentials(accessKeyID: id, secretAccessKey: secret)
    let bucket = Client("https://photos.s3.eu-central-1.amazonaws.com").with {
        $0.auth = .awsSigV4(credentials, region: "eu-central-1", service: "s3")
    }
    let signature = SigV4Signature(region: "eu-central-1", service: "s3") { credentials }
    let link = try await signature.presignedURL(
        for: "https://photos.s3.amazonaws.com/bird.jpg", expiresIn: .seconds(900))
    _ = (bucket, link)
}

private func netrc(error: NetworkError) {
    let api = Client("https://api.example.com").with { $0.auth = .netrc() }
    _ = api
    if let flaw = error.cause as? InvalidNetrc { print("Look at line \(flaw.line).") }
}
