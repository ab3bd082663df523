# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures rows that are not one run of one client: cold start, two sessions, callgrind, calls of the allocator."""

import json
import os
import pathlib
import re
import shutil

from clients import RELEASE, TOOLS
from measure import Failure, Watch, execute, measure, reaped


def cold_start(workload, client, clients, servers, cores):
    """Measures the CPU time of the whole process, from its start to its end."""
    if client == "floor":
        program = TOOLS / "one-get"
    elif client == "curlew":
        program = RELEASE / "one-get"
    else:
        # The folder of a build given by --binary may contain the program.
        program = pathlib.Path(clients.commands[client][0]).parent / "one-get"
        if client in ("curlew+executor", "urlsession") or client.endswith("+executor") or not program.exists():
            return None
    url = servers.url(workload.kind, workload.path)
    watch, before = Watch(cores), reaped()
    for _ in range(workload.count):
        execute([str(program), url], cores)
    is_quiet = not cores or watch.is_quiet()
    return {"milliseconds": (reaped() - before) / workload.count * 1000, "is_quiet": is_quiet}


def scaling(workload, client, clients, servers, cores):
    """Compares the requests per second of two sessions on two cores with those of one session on one core.

    With fewer than four cores each session shares its core with one of nginx's workers in both cases.
    """
    if client == "floor" or client == "urlsession" or not cores:
        return None
    available = sorted(os.sched_getaffinity(0))
    places = (available[:2], available[2:4]) if len(available) >= 4 else (available[:2], available[:2])
    rates = []
    watch = Watch(set(places[0] + places[1]))
    for sessions in (1, 2):
        nginx = servers.start_scaling(places[0][:sessions])
        command = clients.command(workload, client, servers, sessions=sessions)
        try:
            figures = json.loads(execute(command, places[1][:sessions])[0])
        finally:
            servers.stop(nginx)
        rates.append(figures["requests"] / figures["wall"])
    return {"scaling": rates[1] / rates[0], "one": rates[0], "two": rates[1], "is_quiet": watch.is_quiet()}


class Unavailable(Exception):
    """A tool does not work on this machine."""


def marginal(count_of, workload, clients, client, servers):
    """Computes the cost of an additional request, with 1 and with 64 at a time; skips 64 for small counts."""
    figures = {"is_quiet": True}
    for concurrency in (1, 64) if workload.count > 100 else (1,):
        few, more = max(workload.count // 3, concurrency), max(workload.count, concurrency * 2)
        counts = [count_of(clients.command(workload, client, servers, n=n, c=concurrency)) for n in (few, more)]
        figures[f"c{concurrency}"] = (counts[1] - counts[0]) / (more - few)
    return figures


def instructions(workload, client, clients, servers, cores):
    if client == "urlsession":
        return None
    for program in ("valgrind", "strip"):
        if not shutil.which(program):
            return {"remark": f"{program} is not installed", "is_quiet": True}
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={servers.folder}/callgrind.out"]

    def count(command):
        # Valgrind may not support the compiler's debug information.
        bare = servers.folder / "bare"
        execute(["strip", "-g", "-o", str(bare), command[0]])
        command = [str(bare), *command[1:]]
        try:
            said = execute([*tool, *command], cores)[1]
        except Failure as failure:
            # The message is from valgrind, not from the client that it runs.
            if "valgrind: " in str(failure):
                raise Unavailable("valgrind failed: " + str(failure).strip().splitlines()[-1][:80]) from None
            raise
        found = re.search(r"Collected : (\d+)", said)
        if not found:
            raise Unavailable("callgrind collected nothing")
        return int(found.group(1))

    try:
        return marginal(count, workload, clients, client, servers)
    except Unavailable as reason:
        return {"remark": str(reason), "is_quiet": True}


def allocations(workload, client, clients, servers, cores):
    if client == "urlsession":
        return None

    def count(command):
        said = execute(command, cores, {"LD_PRELOAD": str(TOOLS / "mallocs.so")})[1]
        return int(re.search(r"allocations: (\d+)", said).group(1))

    return marginal(count, workload, clients, client, servers)


def request_or_byte(workload, client, clients, servers, cores):
    before = servers.accepted(workload.kind)
    figures = measure(clients.command(workload, client, servers), cores, servers)
    if figures["requests"] != clients.count(workload, client):
        raise Failure(f"{client} made {figures['requests']} requests of {workload.name}")
    (servers.folder / "downloaded").unlink(missing_ok=True)
    shutil.rmtree(servers.folder / "cache", ignore_errors=True)
    figures["connections"] = before and servers.accepted(workload.kind) - before - 1
    return figures


ONCE = {
    "request": request_or_byte, "byte": request_or_byte, "cold-start": cold_start, "scaling": scaling,
    "instructions": instructions, "allocations": allocations,
}
# Figures that are the same in every round.
STEADY = ("instructions", "allocations")
