// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@Suite struct ChildProgramTests {
    /// A program killed while it writes its coverage leaves a broken file that fails the report of the whole run.
    @Test func programsWriteNoCoverage() {
        #expect(ChildProgram.environment()["LLVM_PROFILE_FILE"] == "/dev/null")
    }

    @Test func environmentAddsVariablesAndDropsUnlistedOnes() {
        let environment = ChildProgram.environment(adding: ["PATH": "/nowhere", "TERM": "xterm"])
        #expect(environment["PATH"] == "/nowhere")
        #expect(environment["TERM"] == "xterm")
        #expect(environment["HOME"] == nil)
    }
}
