// swift-tools-version: 6.2
import PackageDescription

let refusesWarnings = Context.environment["CURLEW_WARNINGS_AS_ERRORS"] == "1"

let strict: [SwiftSetting] =
    [.swiftLanguageMode(.v6)] + (refusesWarnings ? [.treatAllWarnings(as: .error)] : []) + [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ]

let curlew = Target.Dependency.product(name: "Curlew", package: "curlew")

let curlewCache = Target.Dependency.product(name: "CurlewCache", package: "curlew")

let curlewImages = Target.Dependency.product(name: "CurlewImages", package: "curlew")

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "curlew", path: "..")],
    targets: [
        .target(name: "Measuring", swiftSettings: strict),
        .executableTarget(
            name: "curlew-bench", dependencies: ["Measuring", curlew, curlewCache], path: "Sources/CurlewBench",
            swiftSettings: strict),
        // A separate target, so that Curlew's process does not load Foundation.
        .executableTarget(
            name: "urlsession-bench", dependencies: ["Measuring"], path: "Sources/URLSessionBench",
            swiftSettings: strict),
        .executableTarget(
            name: "stream-bench", dependencies: [curlew], path: "Sources/StreamBench", swiftSettings: strict),
        .executableTarget(
            name: "json-bench", dependencies: ["Measuring", curlew], path: "Sources/JSONBench", swiftSettings: strict),
        .systemLibrary(name: "CPixbuf", pkgConfig: "gdk-pixbuf-2.0"),
        .executableTarget(
            name: "image-bench", dependencies: ["CPixbuf", "Measuring", curlewImages], path: "Sources/ImageBench",
            swiftSettings: strict),
        .executableTarget(name: "one-get", dependencies: [curlew], path: "Sources/OneGet", swiftSettings: strict),
    ]
)
