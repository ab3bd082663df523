// swift-tools-version: 6.2
import PackageDescription

/// Whether warnings are errors, as in our own CI; elsewhere they are not, because a newer compiler may add warnings.
let refusesWarnings = Context.environment["CURLEW_WARNINGS_AS_ERRORS"] == "1"

/// The settings of every Swift target: Swift 6 mode and explicit access levels on imports.
let strict: [SwiftSetting] =
    [.swiftLanguageMode(.v6)] + (refusesWarnings ? [.treatAllWarnings(as: .error)] : []) + [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ]

/// The settings of every C target.
let strictC: [CSetting] = refusesWarnings ? [.treatAllWarnings(as: .error)] : []

let package = Package(
    name: "curlew",
    products: [
        .library(name: "Curlew", targets: ["Curlew"]),
        .library(name: "CurlewAuth", targets: ["CurlewAuth"]),
        .library(name: "CurlewCache", targets: ["CurlewCache"]),
        .library(name: "CurlewImages", targets: ["CurlewImages"]),
        .library(name: "CurlewMedia", targets: ["CurlewMedia"]),
        .library(name: "CurlewTerminal", targets: ["CurlewTerminal"]),
        .library(name: "CurlewXML", targets: ["CurlewXML"]),
        .library(name: "CurlewTesting", targets: ["CurlewTesting"]),
    ],
    targets: [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CXML2", pkgConfig: "libxml-2.0", providers: [.apt(["libxml2-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CGdkPixbuf", pkgConfig: "gdk-pixbuf-2.0", providers: [.apt(["libgdk-pixbuf-2.0-dev"])]),
        .target(
            name: "CurlewShims",
            dependencies: ["CCurl", "COpenSSL"], cSettings: strictC
        ),
        .target(name: "CurlewSupport", swiftSettings: strict),
        .target(name: "CurlewEngine", dependencies: ["CurlewShims", "CurlewSupport"], swiftSettings: strict),
        .target(name: "Curlew", dependencies: ["CurlewEngine", "CurlewSupport"], swiftSettings: strict),
        .target(
            name: "CurlewAuth", dependencies: ["Curlew", "CurlewEngine", "CurlewShims", "CurlewSupport"],
            swiftSettings: strict),
        .target(
            name: "CurlewCache", dependencies: ["Curlew", "CurlewEngine", "CurlewShims", "CurlewSupport", "CSQLite"],
            swiftSettings: strict),
        .target(
            name: "CurlewImages", dependencies: ["Curlew", "CurlewEngine", "CurlewSupport", "CGdkPixbuf"],
            swiftSettings: strict),
        .target(
            name: "CurlewMedia", dependencies: ["Curlew", "CurlewEngine", "CurlewShims", "CurlewSupport"],
            swiftSettings: strict),
        .target(
            name: "CurlewTerminal", dependencies: ["Curlew", "CurlewEngine", "CurlewSupport"], swiftSettings: strict),
        .target(name: "CurlewXML", dependencies: ["Curlew", "CurlewSupport", "CXML2"], swiftSettings: strict),
        .target(
            name: "CurlewTesting", dependencies: ["Curlew", "CurlewShims", "CurlewSupport"], swiftSettings: strict),

        .executableTarget(
            name: "Tour", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/Tour", swiftSettings: strict),
        .executableTarget(
            name: "Faults", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/Faults", swiftSettings: strict),
        .executableTarget(
            name: "Observe", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/Observe",
            swiftSettings: strict),
        .executableTarget(
            name: "PinnedTLS", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/PinnedTLS",
            swiftSettings: strict),
        .executableTarget(
            name: "TypedAPI", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/TypedAPI",
            swiftSettings: strict),
        .executableTarget(
            name: "Cached", dependencies: ["Curlew", "CurlewCache", "CurlewTesting"], path: "Examples/Cached",
            swiftSettings: strict),
        .executableTarget(
            name: "Proxied", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/Proxied",
            swiftSettings: strict),
        .executableTarget(
            name: "Resilient", dependencies: ["Curlew", "CurlewAuth", "CurlewTesting"], path: "Examples/Resilient",
            swiftSettings: strict),
        .executableTarget(
            name: "Scraper", dependencies: ["Curlew", "CurlewTesting"], path: "Examples/Scraper",
            swiftSettings: strict),
        .executableTarget(
            name: "Stream", dependencies: ["Curlew", "CurlewTesting", "CurlewXML"], path: "Examples/Stream",
            swiftSettings: strict),
        .executableTarget(
            name: "Download", dependencies: ["Curlew", "CurlewTerminal", "CurlewTesting"], path: "Examples/Download",
            swiftSettings: strict),
        .executableTarget(
            name: "Watch", dependencies: ["Curlew", "CurlewTerminal", "CurlewTesting"], path: "Examples/Watch",
            exclude: ["demo.sh"], swiftSettings: strict),
        .executableTarget(
            name: "Gallery", dependencies: ["Curlew", "CurlewImages", "CurlewTesting", "CurlewXML"],
            path: "Examples/Gallery", swiftSettings: strict),
        .executableTarget(
            name: "Player", dependencies: ["Curlew", "CurlewMedia", "CurlewTesting"], path: "Examples/Player",
            swiftSettings: strict),
        .executableTarget(name: "GetJSON", dependencies: ["Curlew"], path: "Examples/GetJSON", swiftSettings: strict),

        // The child process of tests that measure the descriptors, threads and memory of a process.
        .executableTarget(
            name: "curlew-soak", dependencies: ["Curlew", "CurlewTesting"], path: "Tests/Fixtures/Soak",
            swiftSettings: strict),

        // A module that exports names of Curlew's, as web frameworks do.
        .target(name: "SameNames", path: "Tests/Fixtures/SameNames", swiftSettings: strict),

        // The child process that is killed while it downloads. KillPoint replaces functions of the C library to kill
        // it, so no other program links KillPoint.
        .target(name: "CKillPoint", path: "Tests/Fixtures/KillPoint", cSettings: strictC),
        .executableTarget(
            name: "curlew-store", dependencies: ["Curlew", "CKillPoint"], path: "Tests/Fixtures/Store",
            swiftSettings: strict),

        // The child process of tests in which several processes share a cache on the disk, or are killed.
        .executableTarget(
            name: "curlew-cache", dependencies: ["Curlew", "CurlewCache", "CurlewTesting", "CKillPoint"],
            path: "Tests/Fixtures/Cache", swiftSettings: strict),

        // The child process of tests in which a process with a media cache is killed, or its memory is measured.
        .executableTarget(
            name: "curlew-media", dependencies: ["Curlew", "CurlewMedia", "CurlewTesting", "CKillPoint"],
            path: "Tests/Fixtures/Media", swiftSettings: strict),

        // The child process of tests in which several processes share a cookie file.
        .executableTarget(
            name: "curlew-jar", dependencies: ["Curlew"], path: "Tests/Fixtures/Jar", swiftSettings: strict),

        .testTarget(name: "CurlewSupportTests", dependencies: ["CurlewSupport"], swiftSettings: strict),
        .testTarget(
            name: "CurlewEngineTests", dependencies: ["CurlewEngine", "CurlewShims", "CurlewSupport", "CurlewTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "CurlewTests",
            dependencies: [
                "Curlew", "CurlewAuth", "CurlewEngine", "CurlewShims", "CurlewSupport", "CurlewTerminal",
                "CurlewTesting",
                "curlew-jar", "curlew-soak", "Download", "Watch",
            ],
            exclude: ["Trust/trust-scenarios.json"], swiftSettings: strict),
        .testTarget(
            name: "CurlewCacheTests",
            dependencies: ["Curlew", "CurlewCache", "CurlewEngine", "CurlewSupport", "CurlewTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "CurlewImagesTests",
            dependencies: ["Curlew", "CurlewEngine", "CurlewImages", "CurlewSupport", "CurlewTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "CurlewMediaTests",
            dependencies: [
                "Curlew", "CurlewEngine", "CurlewMedia", "CurlewSupport", "CurlewTesting", "curlew-media",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "CurlewXMLTests", dependencies: ["Curlew", "CurlewXML", "CurlewTesting"], swiftSettings: strict),
        .testTarget(name: "CurlewTestingTests", dependencies: ["CurlewTesting"], swiftSettings: strict),
        .testTarget(
            name: "SurfaceTests",
            dependencies: [
                "Curlew", "CurlewAuth", "CurlewCache", "CurlewImages", "CurlewMedia", "CurlewTerminal", "CurlewXML",
                "CurlewTesting", "SameNames",
            ],
            swiftSettings: strict),
        .testTarget(name: "ReleaseTests", dependencies: ["Curlew", "CurlewTesting"], swiftSettings: strict),
    ]
)

// Only the release tests, compiled as users compile the package: every other test target needs testability.
if Context.environment["CURLEW_RELEASE_TESTS"] != nil {
    package.targets.removeAll { $0.type == .test && $0.name != "ReleaseTests" }
}
