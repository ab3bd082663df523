# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of workloads and their targets."""

import dataclasses

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Files that have their full size in a quick measurement.
STEADY = ("/medium", "/limited")

# The description of the figure of each target.
WORDS = {
    "ratio": "CPU, × floor",
    "by-hand": "CPU, × curlew",
    "by-foundation": "CPU, × curlew+foundation",
    "by-reading": "CPU, × curlew+reading",
    "by-saving": "CPU, × curlew+saving",
    "cpu": "CPU, µs/request",
    "rss": "RSS over base, MiB",
    "share": "CPU, share of the wall time",
    "flight": "RSS above the floor's, KiB a request in flight",
    "wall": "wall time, × floor",
    "milliseconds": "CPU, ms",
    "scaling": "requests/s, × one session",
}


@dataclasses.dataclass(frozen=True)
class Target:
    """A figure to report; a figure without a limit has no verdict."""

    client: str
    figure: str
    limit: float | None

    def is_met(self, value):
        return value >= self.limit if self.figure == "scaling" else value <= self.limit


@dataclasses.dataclass(frozen=True)
class Workload:
    """One row: `count` requests, `concurrency` at a time, to `path` of the server `kind`."""

    name: str
    title: str
    kind: str
    path: str
    count: int
    concurrency: int = 1
    options: dict = dataclasses.field(default_factory=dict)
    # More options for one client.
    own: dict = dataclasses.field(default_factory=dict)
    # The reduction for slow clients: client → divisor of `count`.
    less: dict = dataclasses.field(default_factory=dict)
    without: tuple = ()
    targets: tuple = ()
    # The unit of the figures of the row: `request`, `byte`, or one that driver/special.py measures.
    unit: str = "request"


def small(name, title, kind, count, concurrency, limit, options=None, targets=(), less=20, own=None):
    return Workload(name, title, kind, "/small", count, concurrency, {"expect": KIB, **(options or {})},
                    own=own or {}, less={"urlsession": less},
                    targets=(Target("curlew", "ratio", limit), *targets))


def decoded(name, path, count, concurrency, limit):
    """Compares the API client with its own and with Foundation's decoder, and with a session and Foundation's decoder."""
    size, times = "10 KiB" if path == "/json10" else "1 KiB", "one" if concurrency == 1 else concurrency
    title = f"GET {size} of JSON and decode it, {times} at a time; the floor does not decode"
    targets = (Target("curlew+client", "by-foundation", limit),) if limit else ()
    return Workload(name, title, "http", path, count, concurrency, {"json": 1}, without=("urlsession",),
                    targets=(*targets, Target("curlew+foundation", "by-hand", 1.1)))


def download(name, title, kind, limit, options=None):
    targets = (Target("curlew", "ratio", limit),) if limit else ()
    return Workload(name, title, kind, "/big", 1, 1, {"expect": 2 * GIB, **(options or {})}, targets=targets,
                    unit="byte")


def slow(name, title, kind, path, options):
    targets = (Target("curlew", "rss", 8), Target("curlew", "share", 0.2))
    return Workload(name, title, kind, path, 1, 1, options, targets=targets, unit="byte")


def many(count):
    return Workload(f"many-{count}", f"{count:,} in flight, answered after 1 s", "sink", "/delay/1000", count, count,
                    {"expect": KIB}, own={"floor": {"fresh": 1}},
                    targets=(Target("curlew", "flight", 4),))


def cached(name, title, file, count, size, cache, target, own=None, unit="request"):
    """Compares a client that has a cache with clients without one; `cache` has the options of the cache."""
    return Workload(name, title, "http", f"/fresh/{file}", count, 1, {"expect": size},
                    own={"curlew+cache": cache, **(own or {})}, without=("urlsession", "curlew+executor"),
                    targets=(target,), unit=unit)


def routed(name, title, kind, count, concurrency, limit, route):
    """Requests through a proxy or over a Unix socket; `urlsession` has no option for them."""
    return Workload(name, title, kind, "/small", count, concurrency, {"expect": KIB, **route}, without=("urlsession",),
                    targets=(Target("curlew", "ratio", limit),))


def counted(name, title, kind, route):
    """Counts the instructions and the calls of the allocator for such requests."""
    figures = (("instructions", 1500, "instructions in user space (callgrind)"),
               ("allocations", 3000, "calls of the allocator"))
    return [Workload(f"{name}-{unit}", f"{title}: {figure}", kind, "/small", count, options={"expect": KIB, **route},
                     without=("urlsession", "curlew+executor"), unit=unit) for unit, count, figure in figures]


H2 = {"http": 2}
PROXY = {"proxy": "{proxy}"}
UNIX = {"unix": "{folder}/socket"}
PACED = {"expect": 64 * MIB, "pace": 1}
SLOWLY = {"upload": 64 * MIB}
UPLOAD = {"upload": GIB}

WORKLOADS = [
    small("small-c1", "GET 1 KiB, one at a time", "http", 20000, 1, 1.4,
          targets=(Target("curlew+executor", "ratio", 1.15),)),
    small("small-c64", "GET 1 KiB, 64 at a time", "http", 60000, 64, 1.2),
    small("small-c256", "GET 1 KiB, 256 at a time", "http", 60000, 256, 1.2),
    small("small-https", "GET 1 KiB, 64 at a time, https", "https", 60000, 64, 1.2, less=100),
    small("small-h2", "GET 1 KiB, 64 at a time, HTTP/2, one connection", "h2", 60000, 64, 1.2, H2),
    decoded("json-c1", "/json", 20000, 1, None),
    decoded("json-c64", "/json", 40000, 64, 0.45),
    decoded("json10-c1", "/json10", 8000, 1, 0.25),
    decoded("json10-c64", "/json10", 12000, 64, 0.25),
    small("new-http", "new connection each, 8 at a time, http", "closing", 10000, 8, 1.4),
    small("new-tls-full", "new connection each, 8 at a time, full TLS handshake", "closing_full", 2000, 8, 1.15,
          less=20, own={"floor": {"resume": 0}}),
    small("new-tls", "new connection each, 8 at a time, TLS resumed", "closing_tls", 3000, 8, 1.3, less=30),
    routed("proxy-c1", "GET 1 KiB, one at a time, forwarded by a proxy", "http", 20000, 1, 1.1, PROXY),
    routed("proxy-c64", "GET 1 KiB, 64 at a time, forwarded by a proxy", "http", 60000, 64, 1.1, PROXY),
    routed("tunnel-c1", "GET 1 KiB, one at a time, https through a tunnel", "https", 20000, 1, 1.1, PROXY),
    routed("tunnel-c64", "GET 1 KiB, 64 at a time, https through a tunnel", "https", 60000, 64, 1.1, PROXY),
    routed("unix", "new connection each, 8 at a time, Unix socket", "closing", 10000, 8, None, UNIX),
    download("download-http", "download 2 GiB, http", "http", 1.5),
    download("download-https", "download 2 GiB, https", "https", 1.12),
    download("download-h2", "download 2 GiB, HTTP/2", "h2", 1.12, H2),
    download("download-file", "download 2 GiB to a file, http", "http", None, {"file": "{folder}/downloaded"}),
    Workload("download-to", "download a file of 4 GiB, http; the floor with the same steps", "http", "/huge", 1, 1,
             {"expect": 4 * GIB, "download": "{folder}/downloaded"}, unit="byte", without=("urlsession",),
             targets=(Target("curlew", "ratio", 1.25), Target("curlew", "rss", 8))),
    Workload("segments", "download a file of 16 MiB at 512 KiB/s a connection, 8 at once; the floor over one", "http",
             "/limited", 1, 1, {"expect": 16 * MIB, "download": "{folder}/downloaded"}, own={"curlew": {"segments": 8}},
             unit="byte", without=("urlsession", "curlew+executor"), targets=(Target("curlew", "wall", 0.33),)),
    Workload("upload-http", "upload 1 GiB, http", "sink", "/sink", 1, 1, UPLOAD, unit="byte",
             targets=(Target("curlew", "ratio", 1.2),)),
    Workload("upload-https", "upload 1 GiB, https", "https", "/sink", 1, 1, UPLOAD, unit="byte",
             targets=(Target("curlew", "ratio", 1.1),)),
    Workload("multipart-upload", "upload a file of 1 GiB in a form, http; the floor by curl_mime", "sink", "/sink", 1, 1,
             {"form": "{folder}/files/big", **UPLOAD}, unit="byte", without=("urlsession",),
             targets=(Target("curlew", "ratio", 1.3),)),
    slow("slow-consumer-http", "64 MiB, 64 KiB read per ms, http", "http", "/medium", PACED),
    slow("slow-consumer-https", "64 MiB, 64 KiB read per ms, https", "https", "/medium", PACED),
    slow("slow-consumer-h2", "64 MiB, 64 KiB read per ms, HTTP/2", "h2", "/medium", {**PACED, **H2}),
    slow("slow-server-http", "64 MiB sent, server takes 64 KiB per ms, http", "sink", "/slow/1", SLOWLY),
    slow("slow-server-https", "64 MiB sent, server takes 64 KiB per ms, https", "https", "/slow/1", SLOWLY),
    slow("slow-server-h2", "64 MiB sent, server takes 64 KiB per ms, HTTP/2", "h2", "/slow/1", {**SLOWLY, **H2}),
    many(1000),
    many(2000),
    many(10000),
    Workload("waves-10000", "10,000 calls at once, answered after 0.1 s; the floor 512 at a time", "sink",
             "/delay/100", 10000, 10000, {"expect": KIB, "connections": 512}, own={"floor": {"c": 512}},
             without=("urlsession",), targets=(Target("curlew", "wall", 1.2),)),
    Workload("collect", "64 MiB collected in memory, http", "http", "/medium", 4, 1,
             {"expect": 64 * MIB, "collect": 1}, unit="byte"),
    cached("cache-memory", "GET 1 KiB; a hit in memory for curlew+cache", "small", 40000, KIB, {"cache": "memory"},
           Target("curlew+cache", "cpu", 25)),
    cached("cache-disk", "GET 100 KiB; a hit on the disk for curlew+cache", "image", 10000, 100 * KIB,
           {"cache": "{folder}/cache"}, Target("curlew+cache", "by-reading", None),
           {"curlew+reading": {"reads": "{folder}/files/image"}}),
    cached("cache-store", "download 1 GiB; curlew+cache also stores it on the disk", "stored", 1, GIB,
           {"cache": "{folder}/cache", "reload": 1}, Target("curlew+cache", "by-saving", None),
           {"curlew+saving": {"download": "{folder}/downloaded"}}, "byte"),
    Workload("cold-start", "a program that makes one request", "http", "/small", 20, unit="cold-start",
             targets=(Target("curlew", "milliseconds", 9),)),
    Workload("scaling", "two sessions on two cores, one session on one", "scaling", "/small", 40000, 64,
             {"expect": KIB}, unit="scaling", targets=(Target("curlew", "scaling", 1.8),)),
    Workload("instructions", "instructions in user space (callgrind)", "http", "/small", 1500,
             options={"expect": KIB}, unit="instructions"),
    Workload("allocations", "calls of the allocator", "http", "/small", 3000, options={"expect": KIB},
             unit="allocations"),
    *counted("proxy", "forwarded by a proxy", "http", PROXY),
    *counted("tunnel", "https through a tunnel", "https", PROXY),
    *counted("unix", "new connection over a Unix socket", "closing", UNIX),
]


def scaled(workload, divisor, is_smoke):
    """Returns a reduced workload; `is_smoke` leaves just enough to check that it works."""
    options = dict(workload.options)
    for name in ("expect", "upload"):
        size = options.get(name, 0)
        if size >= MIB and workload.path not in STEADY:
            options[name] = max(MIB, 4 * MIB if is_smoke else size // divisor // MIB * MIB)
    if is_smoke and workload.path in STEADY:
        options["expect"] = 4 * MIB
    count, concurrency = workload.count, workload.concurrency
    own = workload.own
    if is_smoke:
        concurrency = min(concurrency, 16)
        count = max(concurrency, min(count, 32))
        own = {"floor": {"c": 8}} if "c" in own.get("floor", {}) else own
    elif concurrency < 1000 and workload.unit == "request":
        count = max(concurrency, count // divisor)
    return dataclasses.replace(workload, options=options, count=count, concurrency=concurrency, own=own)
