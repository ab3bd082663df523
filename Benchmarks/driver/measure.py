# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""One run of one client: its line of figures, and whether something else was busy meanwhile."""

import json
import os
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
FOREIGN = 0.12


def busy(core):
    """Seconds a core has worked, for whomever."""
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith(f"cpu{core} "):
                user, nice, system, _, _, irq, soft, steal = map(int, line.split()[1:9])
                return (user + nice + system + irq + soft + steal) / TICK
    return 0.0


class Failure(Exception):
    """A client that did not do what it was told."""


def measure(command, core, environment=None, timeout=180):
    """Runs a client on a core. Returns what it printed, with `foreign`: the share of the core that others had."""
    began, before = time.monotonic(), busy(core)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, **(environment or {})})
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failure(f"{' '.join(command)}: not done after {timeout} s") from None
    wall = time.monotonic() - began
    if process.returncode != 0:
        raise Failure(f"{' '.join(command)}: status {process.returncode}: {errors.strip()}")
    figures = json.loads(output)
    figures["cpu"] = figures["user"] + figures["sys"]
    if core is not None:
        figures["foreign"] = max(0.0, (busy(core) - before - figures["cpu"] - 0.02) / wall)
    return figures
