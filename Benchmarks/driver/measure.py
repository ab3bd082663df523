# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""One run of one client: its line of figures, and whether something else was busy meanwhile."""

import json
import os
import resource
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
# The share of a core that others may have had; the server's core matters less.
FOREIGN, FOREIGN_AT_SERVER = 0.12, 0.25
UNCERTAIN = 0.04
LONGEST = 240


class Failure(Exception):
    """A client that did not do what it was told."""


def busy(cores):
    """Seconds these cores have worked, for whomever, or were taken away."""
    total = 0
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] in {f"cpu{core}" for core in cores}:
                user, nice, system, _, _, irq, soft, steal = map(int, words[1:9])
                total += user + nice + system + irq + soft + steal
    return total / TICK


def reaped():
    """CPU seconds of the processes that have ended and were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def execute(command, cores=(), environment=None):
    """Runs a command on some cores, which it takes over from us. Returns its output and what it said beside."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, **(environment or {})})
    finally:
        os.sched_setaffinity(0, before)
    try:
        output, errors = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failure(f"{' '.join(command)}: not done after {LONGEST} s") from None
    if process.returncode != 0:
        raise Failure(f"{' '.join(command)}: status {process.returncode}: {errors.strip() or 'no word'}")
    return output, errors


class Watch:
    """Whether some cores worked for nobody but the processes that were begun and waited for since."""

    def __init__(self, cores):
        self.cores = cores
        self.began, self.busy, self.reaped = time.monotonic(), busy(cores), reaped()

    def foreign(self):
        """The share of a core that others had; all of it is sampled in ticks of 10 ms, of several processes."""
        own = reaped() - self.reaped
        return (busy(self.cores) - self.busy - own - UNCERTAIN) / (time.monotonic() - self.began)

    def is_quiet(self):
        return self.foreign() <= FOREIGN


def measure(command, cores, servers):
    """Runs a client. Its figures come with `is_quiet`: whether the cores were its own and the server's."""
    served = servers.cpu()
    began, before, watch = time.monotonic(), busy(servers.cores), Watch(cores)
    output, _ = execute(command, cores)
    foreign, after = watch.foreign(), busy(servers.cores)
    wall = time.monotonic() - began
    try:
        figures = json.loads(output)
    except ValueError:
        raise Failure(f"{' '.join(command)}: printed {output!r}") from None
    figures["cpu"] = figures["user"] + figures["sys"]
    at_server = (after - before - (servers.cpu() - served) - UNCERTAIN) / wall
    figures["is_quiet"] = not cores or foreign <= FOREIGN and at_server <= FOREIGN_AT_SERVER
    return figures
