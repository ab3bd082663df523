// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-resilient` runs: what becomes of requests when servers fail, are busy, want to be asked
// less, or want to know who asks. Each theme has a file of its own; Stage.swift has the servers.

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
