# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the servers: nginx and a proxy on one core, with a new certificate, and a folder that is removed at the end."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

MIB = 1 << 20

NGINX = """
daemon off;
pid {folder}/{name}.pid;
error_log {folder}/error.log error;
worker_processes {workers};
{affinity}
worker_rlimit_nofile 65536;
{user}
events {{ worker_connections 30000; }}
http {{
    access_log off;
    root {folder}/files;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600;
    open_file_cache max=16 inactive=3600;
    open_file_cache_valid 3600;
    client_max_body_size 0;
    client_body_buffer_size 256k;
    proxy_request_buffering off;
    proxy_http_version 1.1;
    http2_max_concurrent_streams 1024;
    ssl_certificate {folder}/server.pem;
    ssl_certificate_key {folder}/server.key;
    ssl_protocols TLSv1.3;
    server {{ listen 127.0.0.1:{http} backlog=16384; include {folder}/places; }}
    server {{ listen 127.0.0.1:{https} ssl backlog=16384; include {folder}/places; }}
    server {{ listen 127.0.0.1:{h2} ssl http2 backlog=16384; include {folder}/places; }}
    server {{
        listen 127.0.0.1:{closing} backlog=16384;
        listen unix:{folder}/socket backlog=16384;
        keepalive_timeout 0;
    }}
    server {{ listen 127.0.0.1:{closing_tls} ssl backlog=16384; keepalive_timeout 0; }}
    server {{
        listen 127.0.0.1:{closing_full} ssl backlog=16384;
        keepalive_timeout 0;
        ssl_session_cache off;
        ssl_session_tickets off;
    }}
}}
"""
SCALING = """
daemon off;
pid {folder}/{name}.pid;
error_log {folder}/error.log error;
worker_processes {workers};
{affinity}
{user}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    root {folder}/files;
    sendfile on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600;
    open_file_cache max=16 inactive=3600;
    open_file_cache_valid 3600;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{scaling} reuseport; }}
}}
"""
PLACES = """
location = /status { stub_status; }
location ~ ^/json { default_type application/json; }
location = /limited { limit_rate 512k; }
location /fresh/ { alias files/; add_header Cache-Control max-age=86400; }
location = /sink { proxy_pass http://127.0.0.1:%d; }
location /slow/ { proxy_pass http://127.0.0.1:%d; }
"""
# A typical API response, about 1 KiB as JSON.
ORDER = {
    "id": 4711, "customer": "Ada Lovelace", "isPaid": True, "total": 129.5, "currency": "EUR", "note": None,
    "lines": [{"article": f"article-{n}", "count": n, "price": n * 1.25, "tags": ["new", "blue"]} for n in range(12)],
}
# A page of a list, about 10 KiB as JSON.
PAGE = {"total": 4711, "next": "/orders?after=4720", "orders": [{**ORDER, "id": 4711 + n} for n in range(10)]}
# These files are sparse, because each client that downloads or stores them needs the remaining space.
SPARSE = ("huge", "stored")
TICK = os.sysconf("SC_CLK_TCK")


def free_ports(names):
    """Returns a port for each name; the ports were free just before."""
    sockets = [socket.socket() for _ in names]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = {name: one.getsockname()[1] for name, one in zip(names, sockets)}
    for one in sockets:
        one.close()
    return ports


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise SystemExit(f"error: there is no {name}; Scripts/setup-peers installs it")
    return found


class Servers:
    """The running servers, as a context; they use `cores`."""

    def __init__(self, tools, cores, sizes):
        self.tools, self.cores = tools, cores
        self.sizes = {name: size for name, size in sizes.items() if name not in SPARSE}
        self.sparse = {name: sizes[name] for name in SPARSE}
        self.processes, self.pids = [], []

    def __enter__(self):
        memory = pathlib.Path("/dev/shm")
        wanted = 2 * sum(self.sizes.values()) + max(self.sparse.values())
        has_room = memory.is_dir() and shutil.disk_usage(memory).free > wanted
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="curlew-bench-", dir=memory if has_room else None))
        try:
            self.folder.chmod(0o755)
            self.make_files()
            self.make_certificate()
            self.ports = free_ports(["http", "https", "h2", "closing", "closing_tls", "closing_full", "sink", "scaling",
                                     "proxy"])
            self.start([str(self.tools / "server"), str(self.ports["sink"])], "sink")
            self.start([str(self.tools / "proxy"), str(self.ports["proxy"])], "proxy")
            self.start_nginx("nginx", NGINX, self.cores)
            self.find_processes()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_files(self):
        files = self.folder / "files"
        files.mkdir()
        (files / "small").write_bytes(b"x" * 1024)
        (files / "image").write_bytes(os.urandom(100 << 10))
        for name, document in (("json", ORDER), ("json10", PAGE)):
            (files / name).write_text(json.dumps(document), encoding="utf-8")
        block = os.urandom(MIB)
        for name, size in self.sizes.items():
            with open(files / name, "wb") as file:
                for at in range(0, size, MIB):
                    file.write(block[:size - at])

        for name, size in self.sparse.items():
            with open(files / name, "wb") as file:
                file.truncate(size)

    def make_certificate(self):
        self.authority = self.folder / "ca.pem"

        def openssl(*arguments):
            subprocess.run([program("openssl"), *arguments], cwd=self.folder, check=True, capture_output=True)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "7"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Curlew benchmarks")
        openssl("req", "-x509", *key, "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=127.0.0.1",
                "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1",
                "-addext", "basicConstraints=critical,CA:FALSE")

    def start_nginx(self, name, template, cores):
        (self.folder / "places").write_text(PLACES % (self.ports["sink"], self.ports["sink"]))
        # Each worker is pinned to one of the cores.
        affinity = "worker_cpu_affinity " + " ".join(format(1 << core, "b") for core in cores) + ";" if cores else ""
        configuration = self.folder / f"{name}.conf"
        configuration.write_text(template.format(
            folder=self.folder, name=name, workers=max(1, len(cores)), affinity=affinity,
            user="user root;" if os.geteuid() == 0 else "", **self.ports))
        self.start([program("nginx"), "-p", str(self.folder), "-c", str(configuration),
                    "-e", str(self.folder / "error.log")], "http" if name == "nginx" else name, cores)

    def start_scaling(self, cores):
        """Starts another nginx with a worker for each core and returns its process, which `stop` ends."""
        self.start_nginx("scaling", SCALING, cores)
        return self.processes[-1]

    def stop(self, process):
        process.terminate()
        process.wait()
        self.processes.remove(process)

    def start(self, command, port, cores=None):
        before = os.sched_getaffinity(0)
        cores = self.cores if cores is None else cores
        if cores:
            os.sched_setaffinity(0, cores)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        os.sched_setaffinity(0, before)
        self.processes.append(process)
        for _ in range(200):
            if process.poll() is not None:
                raise SystemExit(f"error: {command[0]} does not start")
            try:
                socket.create_connection(("127.0.0.1", self.ports[port]), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"error: {command[0]} does not respond")

    def cpu(self):
        """Returns the CPU seconds of all servers so far."""
        total = 0
        for pid in self.pids:
            words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += int(words[11]) + int(words[12])
        return total / TICK

    def find_processes(self):
        """Finds the processes of the servers and their workers."""
        self.pids = [process.pid for process in self.processes]
        for pid in self.pids[:]:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            self.pids += children.read_text(encoding="ascii").split() if children.exists() else []

    def accepted(self, kind):
        """Returns the number of connections that nginx has accepted, including this one; None for another server."""
        if kind == "sink":
            return None
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}/status", timeout=10) as answer:
            return int(answer.read().split()[7])

    def proxy(self):
        """Returns the URL of the proxy."""
        return f"http://127.0.0.1:{self.ports['proxy']}"

    def url(self, kind, path):
        scheme = "http" if kind in ("http", "closing", "sink", "scaling") else "https"
        return f"{scheme}://127.0.0.1:{self.ports[kind]}{path}"
