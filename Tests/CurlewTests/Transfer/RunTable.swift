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
        besideChain · start: start 1, run chain, → awake
        besideChain · detach: start 1, run chain, → awake
        besideChain · pause: pause 1, → idle
        besideChain · resume: resume 1, → idle
        besideChain · prioritise: prioritise 1, → idle
        besideChain · cancel: report end, → cancelled
        besideChain · drop: report end, → cancelled
        besideChain · awaitFinish: start 1, run chain, → awake
        besideChain · read: stream 1, start 1, run chain, → awake
        besideChain · sent: start 2, → idle
        folded · pause: pause 1, → folded
        folded · resume: resume 1, → folded
        folded · prioritise: prioritise 1, → folded
        folded · cancel: cancel 1, → folded
        folded · drop: cancel 1, → folded
        folded · read: stream 1, → folded
        folded · head not final: run chain, → awake
        folded · end final: report end, → finished with attempt
        folded · end not final: run chain, → awake
        folded · sent: start 2, → folded
        foldedWithWaiter · pause: pause 1, → folded
        foldedWithWaiter · resume: resume 1, → folded
        foldedWithWaiter · prioritise: prioritise 1, → folded
        foldedWithWaiter · cancel: cancel 1, → folded
        foldedWithWaiter · drop: cancel 1, → folded
        foldedWithWaiter · leave: cancel 1, → folded
        foldedWithWaiter · read: stream 1, → folded
        foldedWithWaiter · head not final: run chain, → awake
        foldedWithWaiter · end final: report end, resume 9, → finished with attempt
        foldedWithWaiter · end not final: run chain, → awake
        foldedWithWaiter · sent: start 2, → folded
        foldedWithTwo · pause: pause 1, → folded
        foldedWithTwo · resume: resume 1, → folded
        foldedWithTwo · prioritise: prioritise 1, → folded
        foldedWithTwo · cancel: cancel 1, → folded
        foldedWithTwo · drop: cancel 1, → folded
        foldedWithTwo · leave: withdraw 9, → folded
        foldedWithTwo · read: stream 1, → folded
        foldedWithTwo · head not final: run chain, → awake
        foldedWithTwo · end final: report end, resume 9, resume 6, → finished with attempt
        foldedWithTwo · end not final: run chain, → awake
        foldedWithTwo · sent: start 2, → folded
        foldedDetached · pause: pause 1, → folded
        foldedDetached · resume: resume 1, → folded
        foldedDetached · prioritise: prioritise 1, → folded
        foldedDetached · cancel: cancel 1, → folded
        foldedDetached · leave: withdraw 9, → folded
        foldedDetached · read: stream 1, → folded
        foldedDetached · head not final: run chain, → awake
        foldedDetached · end final: report end, resume 9, → finished with attempt
        foldedDetached · end not final: run chain, → awake
        foldedDetached · sent: start 2, → folded
        foldedStream · pause: pause 1, → folded
        foldedStream · resume: resume 1, → folded
        foldedStream · prioritise: prioritise 1, → folded
        foldedStream · cancel: cancel 1, → folded
        foldedStream · drop: cancel 1, → folded
        foldedStream · leave: cancel 1, → folded
        foldedStream · read: stream 1, → folded
        foldedStream · head final: resume 9, → responded
        foldedStream · head not final: run chain, → awake
        foldedStream · end final: report end, resume 9, → finished with attempt
        foldedStream · end not final: run chain, → awake
        foldedStream · news: resume 9, → folded
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
        awake · pause: pause 1, → awake
        awake · resume: resume 1, → awake
        awake · prioritise: prioritise 1, → awake
        awake · cancel: cancel 1, cancel chain, → awake
        awake · drop: cancel 1, cancel chain, → awake
        awake · read: stream 1, → awake
        awake · sent: start 2, → awake
        awake · respond running: → responded
        awake · respond ended: report end, → finished with attempt
        awake · respond made: report end, → finished with made
        awake · fail: report end, → failed
        awake · expire: cancel chain, → awake
        awakePaused · pause: pause 1, → awake
        awakePaused · resume: resume 1, → awake
        awakePaused · prioritise: prioritise 1, → awake
        awakePaused · cancel: cancel 1, cancel chain, → awake
        awakePaused · drop: cancel 1, cancel chain, → awake
        awakePaused · read: stream 1, → awake
        awakePaused · sent: pause 2, start 2, → awake
        awakePaused · respond running: → responded
        awakePaused · respond ended: report end, → finished with attempt
        awakePaused · respond made: report end, → finished with made
        awakePaused · fail: report end, → failed
        awakePaused · expire: cancel chain, → awake
        awakeSending · pause: pause 1, → awake
        awakeSending · resume: resume 1, → awake
        awakeSending · prioritise: prioritise 1, → awake
        awakeSending · cancel: cancel 1, cancel chain, → awake
        awakeSending · drop: cancel 1, cancel chain, → awake
        awakeSending · read: stream 1, → awake
        awakeSending · head final: resume 8, → awake
        awakeSending · head not final: resume 8, → awake
        awakeSending · end final: resume 8, → awake
        awakeSending · end not final: resume 8, → awake
        awakeSending · sent: start 2, → awake
        awakeSending · respond running: → responded
        awakeSending · respond ended: report end, → finished with attempt
        awakeSending · respond made: report end, → finished with made
        awakeSending · fail: report end, → failed
        awakeSending · expire: cancel chain, → awake
        awakeAwaitingEnd · pause: pause 1, → awake
        awakeAwaitingEnd · resume: resume 1, → awake
        awakeAwaitingEnd · prioritise: prioritise 1, → awake
        awakeAwaitingEnd · cancel: cancel 1, cancel chain, → awake
        awakeAwaitingEnd · drop: cancel 1, cancel chain, → awake
        awakeAwaitingEnd · read: stream 1, resume 8, → awake
        awakeAwaitingEnd · sent: start 2, → awake
        awakeAwaitingEnd · respond running: → responded
        awakeAwaitingEnd · respond ended: report end, → finished with attempt
        awakeAwaitingEnd · respond made: report end, → finished with made
        awakeAwaitingEnd · fail: report end, → failed
        awakeAwaitingEnd · expire: cancel chain, → awake
        awakeAwaitingEnd · end final: resume 8, → awake
        awakeAwaitingEnd · end not final: resume 8, → awake
        awakeWithWaiter · pause: pause 1, → awake
        awakeWithWaiter · resume: resume 1, → awake
        awakeWithWaiter · prioritise: prioritise 1, → awake
        awakeWithWaiter · cancel: cancel 1, cancel chain, → awake
        awakeWithWaiter · drop: cancel 1, cancel chain, → awake
        awakeWithWaiter · leave: cancel 1, cancel chain, → awake
        awakeWithWaiter · read: stream 1, → awake
        awakeWithWaiter · sent: start 2, → awake
        awakeWithWaiter · respond running: → responded
        awakeWithWaiter · respond ended: report end, resume 9, → finished with attempt
        awakeWithWaiter · respond made: report end, resume 9, → finished with made
        awakeWithWaiter · fail: report end, resume 9, → failed
        awakeWithWaiter · expire: cancel chain, → awake
        awakeCancelled · pause: pause 1, → awake
        awakeCancelled · resume: resume 1, → awake
        awakeCancelled · prioritise: prioritise 1, → awake
        awakeCancelled · cancel: cancel 1, cancel chain, → awake
        awakeCancelled · drop: cancel 1, cancel chain, → awake
        awakeCancelled · read: stream 1, → awake
        awakeCancelled · sent: start 2, cancel 2, → awake
        awakeCancelled · respond running: cancel 1, → responded
        awakeCancelled · respond ended: report end, → finished with attempt
        awakeCancelled · respond made: report end, → finished with made
        awakeCancelled · fail: report end, → failed
        awakeCancelled · expire: cancel chain, → awake
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
        awakeWithTwoAttempts · pause: pause 3, pause 1, → awake
        awakeWithTwoAttempts · resume: resume 3, resume 1, → awake
        awakeWithTwoAttempts · prioritise: prioritise 3, prioritise 1, → awake
        awakeWithTwoAttempts · cancel: cancel 3, cancel 1, cancel chain, → awake
        awakeWithTwoAttempts · drop: cancel 3, cancel 1, cancel chain, → awake
        awakeWithTwoAttempts · read: stream 3, stream 1, → awake
        awakeWithTwoAttempts · sent: start 2, → awake
        awakeWithTwoAttempts · respond running: → responded
        awakeWithTwoAttempts · respond ended: report end, → finished with attempt
        awakeWithTwoAttempts · respond made: report end, → finished with made
        awakeWithTwoAttempts · fail: report end, → failed
        awakeWithTwoAttempts · expire: cancel chain, → awake
        """
}
