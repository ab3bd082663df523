# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the clients and composes their commands."""

import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent.parent
TOOLS = HERE / ".build" / "tools"
RELEASE = HERE / ".build" / "release"
SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt"
C_PROGRAMS = {
    "floor": (["floor.c", "floor_loop.c", "measure.c"], ["-lcurl", "-lssl", "-lcrypto"]),
    "server": (["server.c"], []),
    "proxy": (["proxy.c"], []),
    "one-get": (["one_get.c"], ["-lcurl"]),
    "mallocs.so": (["mallocs.c"], ["-shared", "-fPIC"]),
}


def build():
    """Builds the changed programs; the compilers write their messages to the terminal."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if not compiler:
        raise SystemExit("error: there is no C compiler")
    for name, (files, flags) in C_PROGRAMS.items():
        paths = [str(HERE / "C" / file) for file in files]
        subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-o",
                        str(TOOLS / name), *paths, *flags], check=True)
    subprocess.run(["swift", "build", "-c", "release", "--quiet", "--package-path", str(HERE)], check=True)


# The settings that `--floor` may change; Benchmarks/README.md describes the effect of each.
KNOBS = {"lazy", "curlu", "new-handles", "shards", "fresh", "buffer", "upload-buffer", "file-buffer", "sync", "resume", "share",
         "shared-store", "capath", "pipewait", "fields"}
# Clients that run only the workloads with options for them.
OPTIONAL = {"curlew+cache", "curlew+reading", "curlew+saving"}


class Clients:
    """Client name → command, in the order of the tables."""

    def __init__(self, wanted, binaries, floors):
        curlew = str(RELEASE / "curlew-bench")
        self.commands = {"floor": [str(TOOLS / "floor")], "curlew": [curlew],
                         "curlew+executor": [curlew, "executor=1"], "curlew+client": [curlew, "client=1"],
                         "curlew+foundation": [curlew, "client=1", "foundation=1"],
                         "curlew+retry": [curlew, "retry=1"],
                         "curlew+cache": [curlew], "curlew+reading": [curlew], "curlew+saving": [curlew],
                         "urlsession": [str(RELEASE / "urlsession-bench")]}
        if wanted:
            unknown = set(wanted) - set(self.commands)
            if unknown:
                raise SystemExit(f"error: no client is called {', '.join(sorted(unknown))}")
            self.commands = {name: command for name, command in self.commands.items() if name in {"floor", *wanted}}
        for name, path in binaries:
            if not os.access(path, os.X_OK):
                raise SystemExit(f"error: {path} is not a program")
            self.commands[name] = [path]
            if "curlew+executor" in self.commands:
                self.commands[f"{name}+executor"] = [path, "executor=1"]
            if "curlew+cache" in self.commands:
                self.commands[f"{name}+cache"] = [path]
        self.floors = {"floor"}
        for name, knobs in floors:
            for knob in knobs.split(","):
                if "=" not in knob or knob.partition("=")[0] not in KNOBS:
                    raise SystemExit(f"error: {knob!r} does not set a knob of the floor")
            self.commands[name] = [str(TOOLS / "floor"), *knobs.split(",")]
            self.floors.add(name)

    def of(self, workload):
        idle = {*workload.without, *(() if "json" in workload.options else ("curlew+client", "curlew+foundation")),
                *(() if workload.name in ("small-c1", "small-c64") else ("curlew+retry",)),
                *(OPTIONAL - set(workload.own))}
        return [name for name in self.commands if self.key(name) not in idle]

    def key(self, client):
        """Returns the name by which workloads know a client; `--floor` and `--binary` add clients with other names."""
        if client in self.floors:
            return "floor"
        _, plus, variant = client.rpartition("+")
        return f"curlew+{variant}" if plus else client

    def count(self, workload, client):
        return max(workload.concurrency, workload.count // workload.less.get(client, 1))

    def command(self, workload, client, servers, **changes):
        """Returns the command of a client; later options override earlier ones with the same name."""
        options = {"n": self.count(workload, client), "c": workload.concurrency, **workload.options,
                   **workload.own.get(self.key(client), {})}
        # Curlew shards in this case, too. Over HTTP/2 neither shards, because shards would need more than one connection.
        if client in self.floors and changes.get("c", options["c"]) >= 64 and options.get("http") != 2:
            options["shards"] = 16
        url = servers.url(workload.kind, workload.path)
        if url.startswith("https:"):
            options["ca"] = servers.authority
        program, *given = self.commands[client]
        options.update(option.split("=", 1) for option in given)
        options.update(changes)
        command = [program, f"url={url}", *(f"{key}={value}" for key, value in options.items())]
        command = [word.format(folder=servers.folder, proxy=servers.proxy()) for word in command]
        return with_roots(command, servers) if client == "urlsession" and "ca" in options else command


def with_roots(command, servers):
    """Adds our root to the roots of the system in a mount namespace, because URLSession accepts no roots on Linux."""
    bundle = servers.folder / "bundle.pem"
    if not bundle.exists():
        bundle.write_text(pathlib.Path(SYSTEM_ROOTS).read_text(encoding="utf-8")
                          + servers.authority.read_text(encoding="utf-8"), encoding="utf-8")
    script = f'mount --bind "$0" {SYSTEM_ROOTS} && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, str(bundle), *command]


def can_change_roots():
    """Returns whether `with_roots` works on this machine."""
    if not pathlib.Path(SYSTEM_ROOTS).exists() or not shutil.which("unshare"):
        return False
    trial = f"mount --bind {SYSTEM_ROOTS} {SYSTEM_ROOTS}"
    return subprocess.run(["unshare", "-m", "sh", "-c", trial], capture_output=True, check=False).returncode == 0
