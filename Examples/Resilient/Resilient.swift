// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-resilient` runs: requests to servers that fail, are busy, limit their clients or require
// authentication. Each theme has its own file; Stage.swift has the servers.

import Glibc

@main
struct Resilient {
    static func main() async {
        var stage = Stage()
        await retries(&stage)
        await limits(&stage)
        await authentication(&stage)
        stage.end()
    }
}
