// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

struct MediaTypeFilesTests {
    @Test(arguments: [
        ("a.png", "image/png"), ("/srv/b/a.JPEG", "image/jpeg"), ("a.tar.gz", "application/gzip"),
        ("a.b/c", "application/octet-stream"), (".png", "application/octet-stream"), ("", "application/octet-stream"),
        ("a.", "application/octet-stream"), ("a.unheard-of", "application/octet-stream"),
        ("/", "application/octet-stream"), ("x.json", "application/json"), ("x.pdf", "application/pdf"),
        ("é.svg", "image/svg+xml"), ("a.mp4", "video/mp4"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"), ("a.txt", "text/plain"),
    ])
    func mediaTypeFollowsTheFileExtension(_ name: String, _ type: String) {
        #expect(MediaType(forFile: name).description == type)
    }

    @Test func tableIsConsistent() {
        let table = MediaType.byExtension
        #expect(Set(table.values).count >= 150 && table.count > 250)
        for (suffix, type) in table {
            #expect(MediaType(type)?.description == type && suffix == suffix.lowercased(), "\(suffix): \(type)")
        }
    }
}
