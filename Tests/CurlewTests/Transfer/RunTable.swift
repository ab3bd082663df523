// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The expected effects and the new phase of each input in each state of a run, without rows that change nothing.
enum RunTable {
    static let rows = """
        idle · start: start 1, → folded
        idle · detach: start 1, → folded
        idle · pause: pause 1, → idle
        idle · resume: resume 1, → idle
        idle · prioritise: prioritise 1, → idle
        idle · cancel: report end, → cancelled
        idle · drop: report end, → cancelled
        idle · awaitFinish: start 1, → folded
        idle · read: stream 1, start 1, → folded
        idle · sent: start 2, → idle
        idlePaused · start: pause 1, start 1, → folded
        idlePaused · detach: pause 1, start 1, → folded
        idlePaused · pause: pause 1, → idle
        idlePaused · resume: resume 1, → idle
        idlePaused · prioritise: prioritise 1, → idle
        idlePaused · cancel: report end, → cancelled
        idlePaused · drop: report end, → cancelled
        idlePaused · awaitFinish: pause 1, start 1, → folded
        idlePaused · read: pause 1, stream 1, start 1, → folded
        idlePaused · sent: pause 2, start 2, → idle
        besideChain · start: start 1, run chain, → chain
        besideChain · detach: start 1, run chain, → chain
        besideChain · pause: pause 1, → idle
        besideChain · resume: resume 1, → idle
        besideChain · prioritise: prioritise 1, → idle
        besideChain · cancel: report end, → cancelled
        besideChain · drop: report end, → cancelled
        besideChain · awaitFinish: start 1, run chain, → chain
        besideChain · read: stream 1, start 1, run chain, → chain
        besideChain · sent: start 2, → idle
        folded · pause: pause 1, → folded
        folded · resume: resume 1, → folded
        folded · prioritise: prioritise 1, → folded
        folded · cancel: cancel 1, → folded
        folded · drop: cancel 1, → folded
        folded · read: stream 1, → folded
        folded · head not final: run chain, → chain
        folded · end final: report end, → finished with attempt
        folded · end not final: run chain, → chain
        folded · sent: start 2, → folded
        foldedWithWaiter · pause: pause 1, → folded
        foldedWithWaiter · resume: resume 1, → folded
        foldedWithWaiter · prioritise: prioritise 1, → folded
        foldedWithWaiter · cancel: cancel 1, → folded
        foldedWithWaiter · drop: cancel 1, → folded
        foldedWithWaiter · leave: cancel 1, → folded
        foldedWithWaiter · read: stream 1, → folded
        foldedWithWaiter · head not final: run chain, → chain
        foldedWithWaiter · end final: report end, resume 9, → finished with attempt
        foldedWithWaiter · end not final: run chain, → chain
        foldedWithWaiter · sent: start 2, → folded
        foldedWithTwo · pause: pause 1, → folded
        foldedWithTwo · resume: resume 1, → folded
        foldedWithTwo · prioritise: prioritise 1, → folded
        foldedWithTwo · cancel: cancel 1, → folded
        foldedWithTwo · drop: cancel 1, → folded
        foldedWithTwo · leave: withdraw 9, → folded
        foldedWithTwo · read: stream 1, → folded
        foldedWithTwo · head not final: run chain, → chain
        foldedWithTwo · end final: report end, resume 9, resume 6, → finished with attempt
        foldedWithTwo · end not final: run chain, → chain
        foldedWithTwo · sent: start 2, → folded
        foldedDetached · pause: pause 1, → folded
        foldedDetached · resume: resume 1, → folded
        foldedDetached · prioritise: prioritise 1, → folded
        foldedDetached · cancel: cancel 1, → folded
        foldedDetached · leave: withdraw 9, → folded
        foldedDetached · read: stream 1, → folded
        foldedDetached · head not final: run chain, → chain
        foldedDetached · end final: report end, resume 9, → finished with attempt
        foldedDetached · end not final: run chain, → chain
        foldedDetached · sent: start 2, → folded
        foldedStream · pause: pause 1, → folded
        foldedStream · resume: resume 1, → folded
        foldedStream · prioritise: prioritise 1, → folded
        foldedStream · cancel: cancel 1, → folded
        foldedStream · drop: cancel 1, → folded
        foldedStream · leave: cancel 1, → folded
        foldedStream · read: stream 1, → folded
        foldedStream · head final: resume 9, → responded
        foldedStream · head not final: run chain, → chain
        foldedStream · end final: report end, resume 9, → finished with attempt
        foldedStream · end not final: run chain, → chain
        foldedStream · update: resume 9, → folded
        foldedStream · sent: stream 2, start 2, → folded
        foldedCancelled · pause: pause 1, → folded
        foldedCancelled · resume: resume 1, → folded
        foldedCancelled · prioritise: prioritise 1, → folded
        foldedCancelled · cancel: cancel 1, → folded
        foldedCancelled · drop: cancel 1, → folded
        foldedCancelled · read: stream 1, → folded
        foldedCancelled · end final: report end, → finished with attempt
        foldedCancelled · end not final: report end, → cancelled
        foldedCancelled · sent: start 2, → folded
        chain · pause: pause 1, → chain
        chain · resume: resume 1, → chain
        chain · prioritise: prioritise 1, → chain
        chain · cancel: cancel 1, cancel chain, → chain
        chain · drop: cancel 1, cancel chain, → chain
        chain · read: stream 1, → chain
        chain · sent: start 2, → chain
        chain · respond running: → responded
        chain · respond ended: report end, → finished with attempt
        chain · respond made: report end, → finished with made
        chain · fail: report end, → failed
        chain · expire: cancel chain, → chain
        chainPaused · pause: pause 1, → chain
        chainPaused · resume: resume 1, → chain
        chainPaused · prioritise: prioritise 1, → chain
        chainPaused · cancel: cancel 1, cancel chain, → chain
        chainPaused · drop: cancel 1, cancel chain, → chain
        chainPaused · read: stream 1, → chain
        chainPaused · sent: pause 2, start 2, → chain
        chainPaused · respond running: → responded
        chainPaused · respond ended: report end, → finished with attempt
        chainPaused · respond made: report end, → finished with made
        chainPaused · fail: report end, → failed
        chainPaused · expire: cancel chain, → chain
        chainSending · pause: pause 1, → chain
        chainSending · resume: resume 1, → chain
        chainSending · prioritise: prioritise 1, → chain
        chainSending · cancel: cancel 1, cancel chain, → chain
        chainSending · drop: cancel 1, cancel chain, → chain
        chainSending · read: stream 1, → chain
        chainSending · head final: resume 8, → chain
        chainSending · head not final: resume 8, → chain
        chainSending · end final: resume 8, → chain
        chainSending · end not final: resume 8, → chain
        chainSending · sent: start 2, → chain
        chainSending · respond running: → responded
        chainSending · respond ended: report end, → finished with attempt
        chainSending · respond made: report end, → finished with made
        chainSending · fail: report end, → failed
        chainSending · expire: cancel chain, → chain
        chainAwaitingEnd · pause: pause 1, → chain
        chainAwaitingEnd · resume: resume 1, → chain
        chainAwaitingEnd · prioritise: prioritise 1, → chain
        chainAwaitingEnd · cancel: cancel 1, cancel chain, → chain
        chainAwaitingEnd · drop: cancel 1, cancel chain, → chain
        chainAwaitingEnd · read: stream 1, resume 8, → chain
        chainAwaitingEnd · sent: start 2, → chain
        chainAwaitingEnd · respond running: → responded
        chainAwaitingEnd · respond ended: report end, → finished with attempt
        chainAwaitingEnd · respond made: report end, → finished with made
        chainAwaitingEnd · fail: report end, → failed
        chainAwaitingEnd · expire: cancel chain, → chain
        chainAwaitingEnd · end final: resume 8, → chain
        chainAwaitingEnd · end not final: resume 8, → chain
        chainWithWaiter · pause: pause 1, → chain
        chainWithWaiter · resume: resume 1, → chain
        chainWithWaiter · prioritise: prioritise 1, → chain
        chainWithWaiter · cancel: cancel 1, cancel chain, → chain
        chainWithWaiter · drop: cancel 1, cancel chain, → chain
        chainWithWaiter · leave: cancel 1, cancel chain, → chain
        chainWithWaiter · read: stream 1, → chain
        chainWithWaiter · sent: start 2, → chain
        chainWithWaiter · respond running: → responded
        chainWithWaiter · respond ended: report end, resume 9, → finished with attempt
        chainWithWaiter · respond made: report end, resume 9, → finished with made
        chainWithWaiter · fail: report end, resume 9, → failed
        chainWithWaiter · expire: cancel chain, → chain
        chainCancelled · pause: pause 1, → chain
        chainCancelled · resume: resume 1, → chain
        chainCancelled · prioritise: prioritise 1, → chain
        chainCancelled · cancel: cancel 1, cancel chain, → chain
        chainCancelled · drop: cancel 1, cancel chain, → chain
        chainCancelled · read: stream 1, → chain
        chainCancelled · sent: start 2, cancel 2, → chain
        chainCancelled · respond running: cancel 1, → responded
        chainCancelled · respond ended: report end, → finished with attempt
        chainCancelled · respond made: report end, → finished with made
        chainCancelled · fail: report end, → failed
        chainCancelled · expire: cancel chain, → chain
        responded · pause: pause 1, → responded
        responded · resume: resume 1, → responded
        responded · prioritise: prioritise 1, → responded
        responded · cancel: cancel 1, → responded
        responded · drop: cancel 1, → responded
        responded · read: stream 1, → responded
        responded · end final: report end, → finished with attempt
        responded · end not final: report end, → finished with attempt
        responded · sent: start 2, → responded
        respondedWithWaiter · pause: pause 1, → responded
        respondedWithWaiter · resume: resume 1, → responded
        respondedWithWaiter · prioritise: prioritise 1, → responded
        respondedWithWaiter · cancel: cancel 1, → responded
        respondedWithWaiter · drop: cancel 1, → responded
        respondedWithWaiter · leave: cancel 1, → responded
        respondedWithWaiter · read: stream 1, → responded
        respondedWithWaiter · end final: report end, resume 9, → finished with attempt
        respondedWithWaiter · end not final: report end, resume 9, → finished with attempt
        respondedWithWaiter · sent: start 2, → responded
        respondedStream · pause: pause 1, → responded
        respondedStream · resume: resume 1, → responded
        respondedStream · prioritise: prioritise 1, → responded
        respondedStream · cancel: cancel 1, → responded
        respondedStream · drop: cancel 1, → responded
        respondedStream · read: stream 1, → responded
        respondedStream · end final: report end, → finished with attempt
        respondedStream · end not final: report end, → finished with attempt
        respondedStream · sent: stream 2, start 2, → responded
        finished · awaitFinish: resume 7, → finished with attempt
        finished · sent: start 2, → finished with attempt
        refused · start: report end, → failed
        refused · detach: report end, → failed
        refused · awaitFinish: report end, resume 7, → failed
        refused · read: report end, → failed
        refused · sent: start 2, → failed
        chainWithTwoAttempts · pause: pause 3, pause 1, → chain
        chainWithTwoAttempts · resume: resume 3, resume 1, → chain
        chainWithTwoAttempts · prioritise: prioritise 3, prioritise 1, → chain
        chainWithTwoAttempts · cancel: cancel 3, cancel 1, cancel chain, → chain
        chainWithTwoAttempts · drop: cancel 3, cancel 1, cancel chain, → chain
        chainWithTwoAttempts · read: stream 3, stream 1, → chain
        chainWithTwoAttempts · sent: start 2, → chain
        chainWithTwoAttempts · respond running: → responded
        chainWithTwoAttempts · respond ended: report end, → finished with attempt
        chainWithTwoAttempts · respond made: report end, → finished with made
        chainWithTwoAttempts · fail: report end, → failed
        chainWithTwoAttempts · expire: cancel chain, → chain
        """
}
