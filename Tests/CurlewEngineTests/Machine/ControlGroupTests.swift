// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct ControlGroupTests {
    private static func mount(_ root: String, _ point: String, _ type: String = "cgroup2") -> String {
        "41 31 0:38 \(root) \(point) rw,nosuid shared:9 master:1 - \(type) cgroup rw,nsdelegate\n"
    }

    /// The texts of the two files, and the directory of the group.
    static let rows: [(groups: String, mounts: String, directory: String?)] = [
        ("0::/app.slice/a.service\n", mount("/", "/sys/fs/cgroup"), "/sys/fs/cgroup/app.slice/a.service"),
        ("0::/\n", mount("/", "/sys/fs/cgroup"), "/sys/fs/cgroup"),
        // Both hierarchies: version 1 has the controllers.
        (
            "4:memory:/x\n1:name=systemd:/y\n0::/z\n",
            mount("/", "/sys/fs/cgroup/memory", "cgroup") + mount("/", "/sys/fs/cgroup/unified"),
            "/sys/fs/cgroup/unified/z"
        ),
        ("4:memory:/x\n", mount("/", "/sys/fs/cgroup"), nil),
        // A container without a namespace of control groups sees its own directory only.
        ("0::/docker/ab\n", mount("/docker/ab", "/sys/fs/cgroup"), "/sys/fs/cgroup"),
        ("0::/docker/ab/c\n", mount("/docker/ab", "/sys/fs/cgroup"), "/sys/fs/cgroup/c"),
        ("0::/docker/abc\n", mount("/docker/ab", "/sys/fs/cgroup"), nil),
        ("0::/docker/ab\n", mount("/other", "/mnt") + mount("/", "/cgroup"), "/cgroup/docker/ab"),
        // Names with blanks are escaped in one of the files.
        ("0::/a b/c:d\n", mount("/a\\040b", "/my\\040groups\\134x"), "/my groups\\x/c:d"),
        ("0::/a\n", mount("/", "/"), "/a"),
        // Outside of the namespace, and a removed group.
        ("0::/../a\n", mount("/", "/sys/fs/cgroup"), nil),
        ("0::/a (deleted)\n", mount("/", "/sys/fs/cgroup"), nil),
        // Damaged texts.
        ("", "", nil),
        ("0::\n0:\n::\n", mount("/", "/sys/fs/cgroup"), nil),
        ("0::/a\n", "41 31 0:38 / /sys/fs/cgroup rw - \n41 31\n\n- cgroup2\n", nil),
        ("0::/a\n", "41 31 0:38 / /sys/fs/cgroup rw shared:1\n", nil),
        ("0::/a\n", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 none rw\n", "/sys/fs/cgroup/a"),
    ]

    @Test(arguments: ControlGroupTests.rows.indices)
    func directoryOfTheGroupIsFound(_ index: Int) {
        let row = Self.rows[index]
        #expect(ControlGroup.directory(groups: row.groups, mounts: row.mounts) == row.directory)
    }

    @Test(arguments: [
        ("plain", "plain"), ("a\\040b", "a b"), ("\\011\\012\\134", "\t\n\\"), ("\\", "\\"), ("\\04", "\\04"),
        ("\\999", "\\999"), ("\\777", "\\777"), ("\\303\\244", "ä"), ("\\04\\040", "\\04 "),
    ])
    func escapesOfMountinfoAreReplaced(_ text: String, _ expected: String) {
        #expect(ControlGroup.unescaped(text[...]) == expected)
    }
}
