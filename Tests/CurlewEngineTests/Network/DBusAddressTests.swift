// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("D-Bus addresses")
struct DBusAddressTests {
    @Test(arguments: [
        ("unix:path=/run/dbus/system_bus_socket", ["/run/dbus/system_bus_socket"]),
        ("unix:abstract=/tmp/dbus-x,guid=00", ["@/tmp/dbus-x"]),
        ("unix:guid=00,path=/a", ["/a"]),
        ("tcp:host=127.0.0.1,port=1;unix:path=/a;;unix:runtime=yes;unix:abstract=b;", ["/a", "@b"]),
        ("unix:path=/a%20b%2c%2C%c3%A9", ["/a b,,é"]),
        ("unix:path=/a=b", ["/a=b"]),
        ("", []),
        ("unix:", []),
        ("unix", []),
        ("unix:path", []),
        ("unix:path=", []),
        ("unix:path=/a%2", []),
        ("unix:path=/a%", []),
        ("unix:path=/a%zz", []),
        ("unix:path=/a%+1", []),
        ("unix:path=/a%00b", []),
        ("unixexec:path=/a", []),
        ("UNIX:path=/a", []),
    ])
    func unixSocketsAreFound(text: String, expected: [String]) {
        let found = DBusAddress.list(text).map { ($0.isAbstract ? "@" : "") + String(decoding: $0.name, as: UTF8.self) }
        #expect(found == expected)
    }
}
