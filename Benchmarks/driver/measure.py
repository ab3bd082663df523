# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures one run of one client, and whether other processes were busy during the run."""

import json
import os
import resource
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
# The share of a core that other processes may use; the server's core matters less.
FOREIGN, FOREIGN_AT_SERVER = 0.12, 0.25
UNCERTAIN = 0.04
LONGEST = 240


class Failure(Exception):
    """A client failed or did not do its work."""


def busy(cores):
    """Returns the seconds that the cores worked for any process or were stolen by the host."""
    total = 0
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] in {f"cpu{core}" for core in cores}:
                user, nice, system, _, _, irq, soft, steal = map(int, words[1:9])
                total += user + nice + system + irq + soft + steal
    return total / TICK


def reaped():
    """Returns the CPU seconds of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def execute(command, cores=(), environment=None):
    """Runs a command on some cores, which the child inherits, and returns its standard output and standard error."""
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
        raise Failure(f"{' '.join(command)}: not finished after {LONGEST} s") from None
    if process.returncode != 0:
        raise Failure(f"{' '.join(command)}: status {process.returncode}: {errors.strip() or 'no message'}")
    return output, errors


class Watch:
    """Detects whether cores worked for other processes than the children that have started and ended since."""

    def __init__(self, cores):
        self.cores = cores
        self.began, self.busy, self.reaped = time.monotonic(), busy(cores), reaped()

    def foreign(self):
        """Returns the share of a core that other processes used; the kernel samples it in ticks of 10 ms."""
        own = reaped() - self.reaped
        return (busy(self.cores) - self.busy - own - UNCERTAIN) / (time.monotonic() - self.began)

    def is_quiet(self):
        return self.foreign() <= FOREIGN


def measure(command, cores, servers):
    """Runs a client and returns its figures, with `is_quiet`: whether only the client and the server used the cores."""
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
