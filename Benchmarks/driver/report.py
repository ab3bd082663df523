# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes Benchmarks/RESULTS.md: the machine, the targets and the figures."""

import datetime
import os
import pathlib
import re
import shutil
import subprocess

from clients import HERE
from figures import number
from workloads import WORDS

INTRODUCTION = """# Results

This table is the output of `make bench`. All clients do the same work with the same nginx on the same machine, one after
another in each round, in changing order. **×** is the CPU time of a client divided by that of the floor *in the same
round*, and each figure is the median over the rounds in which no other process was busy. The floor is `C/floor.c`: the
least CPU time that a program with the same libcurl can use, to our knowledge. CPU is the user and system time of the
client's process from just before the first request to the end. RSS is the peak of resident memory above the value
before the first request.
"""


def output(*command, beside=False):
    """Returns the standard output of a command, or its standard error; an empty text when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    except OSError:
        return ""
    return (done.stderr if beside else done.stdout).strip() if done.returncode == 0 else ""


def revision():
    name = output("git", "rev-parse", "--short=12", "HEAD")
    if not name:
        return "unknown revision"
    # The run itself writes the table.
    changed = output("git", "status", "--porcelain", "--untracked-files=no", "--", "..", ":!RESULTS.md")
    return name + (" with changes" if changed else "")


def siblings(core):
    """Returns the threads of the processor core to which a thread belongs."""
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        parts = path.read_text(encoding="ascii").strip().split(",")
    except OSError:
        return {core}
    return {number for part in parts
            for number in range(int(part.partition("-")[0]), int(part.rpartition("-")[2]) + 1)}


def first(pattern, text, fallback="unknown"):
    found = re.search(pattern, text, re.M)
    return found.group(1).strip() if found else fallback


def machine(cores):
    """Returns the facts on which the figures depend, as rows."""
    processor = first(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    memory = int(first(r"^MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="utf-8"), "0"))
    system = first(r'^PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))
    nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin") or "nginx"
    pinning = "server on core {}, client on core {}".format(*cores) if cores else "none, there is one core"
    if cores and cores[1] in siblings(cores[0]):
        pinning += ", which are two threads of one"
    return [
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
        ("processor", f"{processor}, {os.cpu_count()} cores, {memory / (1 << 20):.0f} GiB"),
        ("pinning", pinning),
        ("system", f"{system}, Linux {os.uname().release}"),
        ("Swift", first(r"Swift version (\S+)", output("swift", "--version"))),
        ("libcurl", output("pkg-config", "--modversion", "libcurl")),
        ("OpenSSL", output("pkg-config", "--modversion", "openssl")),
        ("nginx", first(r"nginx/(\S+)", output(nginx, "-v", beside=True))),
    ]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "--:|" * (len(heads) - 2)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def targets(measured):
    rows = []
    for workload, results in measured:
        for target in workload.targets:
            value = (results.get(target.client) or {}).get(target.figure)
            sign = "≥" if target.figure == "scaling" else "≤"
            limit = "–" if target.limit is None else f"{sign} {target.limit:g}"
            verdict = ("not measured" if value is None else "" if target.limit is None
                       else "met" if target.is_met(value) else "**not met**")
            rows.append([workload.title, target.client, WORDS[target.figure], limit, number(value, 2), verdict])
    return table(["workload", "client", "figure", "target", "measured", ""], rows)


def requests(measured):
    rows = []
    for workload, results in measured:
        for client, s in results.items():
            rows.append([
                workload.title, client, number(s["cpu"], 1), f"{s['least']:,.1f}–{s['most']:,.1f}",
                number(s["ratio"], 2), number(s["rate"]), number(s["p50"]), number(s["p99"]), number(s["rss"], 1),
                number(s["switches"], 2), number(s["connections"]), rounds(s)])
    return table(["workload", "client", "CPU µs/request", "from–to", "×", "requests/s", "p50 µs", "p99 µs", "RSS MiB",
                  "switches/request", "connections", "rounds"], rows)


def bodies(measured):
    rows = []
    for workload, results in measured:
        for client, s in results.items():
            rows.append([
                workload.title, client, number(s["cpu"], 3), f"{s['least']:.3f}–{s['most']:.3f}",
                number(s["ratio"], 2), number(s["rate"]), number(s["rss"], 1), number(s["share"], 2),
                number(s["switches"]), rounds(s)])
    return table(["workload", "client", "CPU s/GiB", "from–to", "×", "MiB/s", "RSS MiB", "CPU/wall", "switches",
                  "rounds"], rows)


def flights(measured):
    rows = []
    for workload, results in measured:
        for client, s in results.items():
            rows.append([
                workload.title, client, number(s["cpu"], 1), number(s["ratio"], 2), number(s["seconds"], 2),
                number(s["wall"], 2), number(s["rss"], 1), number(s["each"], 1), rounds(s)])
    return table(["workload", "client", "CPU µs/request", "×", "wall s", "wall ×", "RSS MiB", "KiB each", "rounds"], rows)


def rounds(s):
    return str(s["n"]) if s["is_quiet"] else f"{s['n']}, not quiet"


def others(measured):
    rows = []
    for workload, results in measured:
        for client, s in results.items():
            if s.get("remark"):
                rows.append([workload.title, client, s["remark"], ""])
            elif workload.unit == "cold-start":
                rows.append([workload.title, client, f"{s['milliseconds']:.2f} ms CPU",
                             number(s["milliseconds-ratio"], 2)])
            elif workload.unit == "scaling":
                rows.append([workload.title, client, f"{s['one']:,.0f} → {s['two']:,.0f} requests/s",
                             number(s["scaling"], 2)])
            else:
                for at in ("c1", "c64"):
                    rows.append([f"{workload.title} a request, {at[1:]} at a time", client, number(s[at]),
                                 number(s[f"{at}-ratio"], 2)])
    return table(["workload", "client", "figure", "×"], rows)


SECTIONS = [
    ("Requests", requests, lambda w: w.unit == "request" and w.concurrency < 1000),
    ("Bodies", bodies, lambda w: w.unit == "byte"),
    ("Many in flight", flights, lambda w: w.unit == "request" and w.concurrency >= 1000),
    ("Start, scaling, instructions, allocations", others, lambda w: w.unit not in ("request", "byte")),
]


def markdown(reported, facts):
    """Returns the document; `reported` has a workload, {client: summary} and the way it was measured for each row."""
    ways = {}
    for workload, _, how in reported:
        ways.setdefault(how, []).append(workload.name)
    facts = facts + [("measured", how if len(ways) == 1 else f"{how}: {', '.join(names)}")
                     for how, names in ways.items()]
    measured = [(workload, results) for workload, results, _ in reported]
    parts = [INTRODUCTION, table(["", ""], [list(row) for row in facts])]
    parts += ["## Targets\n", targets(measured)]
    for title, make, belongs in SECTIONS:
        mine = [pair for pair in measured if belongs(pair[0])]
        if mine:
            parts += [f"## {title}\n", make(mine)]
    return "\n".join(parts)
