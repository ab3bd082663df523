# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""The servers: nginx on one core, with a certificate made for the occasion, and a folder that goes away with them."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

MIB = 1 << 20

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
worker_processes {workers};
worker_cpu_affinity {affinity};
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
    server {{ listen 127.0.0.1:{closing} backlog=16384; keepalive_timeout 0; }}
    server {{ listen 127.0.0.1:{closing_tls} ssl backlog=16384; keepalive_timeout 0; }}
    server {{
        listen 127.0.0.1:{closing_full} ssl backlog=16384;
        keepalive_timeout 0;
        ssl_session_cache off;
        ssl_session_tickets off;
    }}
}}
"""
PLACES = """
location = /status { stub_status; }
"""


def free_ports(names):
    """A port for each name, free a moment ago."""
    sockets = [socket.socket() for _ in names]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = {name: one.getsockname()[1] for name, one in zip(names, sockets)}
    for one in sockets:
        one.close()
    return ports


def pinned(command, cores):
    """The command, held to these cores; as it is where there is no choice."""
    return ["taskset", "-c", ",".join(map(str, cores)), *command] if cores else list(command)


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise SystemExit(f"error: there is no {name}; Scripts/setup-peers installs it")
    return found


class Servers:
    """Running servers, as a context."""

    def __init__(self, tools, cores, big):
        self.tools, self.cores, self.big = tools, cores, big
        self.processes = []

    def __enter__(self):
        room = "/dev/shm" if shutil.disk_usage("/dev/shm").free > self.big + 2100 * MIB else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="curlew-bench-", dir=room))
        try:
            self.folder.chmod(0o755)
            self.make_files()
            self.make_certificate()
            self.ports = free_ports(["http", "https", "h2", "closing", "closing_tls", "closing_full"])
            self.start_nginx()
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
        block = os.urandom(MIB)
        for name, size in (("big", self.big), ("medium", 64 * MIB)):
            with open(files / name, "wb") as file:
                for at in range(0, size, MIB):
                    file.write(block[:size - at])

    def make_certificate(self):
        self.authority = self.folder / "ca.pem"

        def openssl(*arguments):
            subprocess.run([program("openssl"), *arguments], cwd=self.folder, check=True, capture_output=True)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "7"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Curlew benchmarks")
        openssl("req", "-x509", *key, "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=127.0.0.1",
                "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1",
                "-addext", "basicConstraints=critical,CA:FALSE")

    def start_nginx(self):
        (self.folder / "places").write_text(PLACES)
        core = self.cores[0] if self.cores else None
        text = NGINX.format(
            folder=self.folder, workers=1, user="user root;" if os.geteuid() == 0 else "",
            affinity="auto" if core is None else format(1 << core, "b"), **self.ports)
        if core is None:
            text = text.replace("worker_cpu_affinity auto;\n", "")
        (self.folder / "nginx.conf").write_text(text)
        self.start([program("nginx"), "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"),
                    "-e", str(self.folder / "error.log")], self.ports["http"])

    def start(self, command, port):
        process = subprocess.Popen(pinned(command, self.cores), stdin=subprocess.DEVNULL)
        self.processes.append(process)
        for _ in range(200):
            if process.poll() is not None:
                raise SystemExit(f"error: {command[0]} does not start")
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"error: {command[0]} does not answer")

    def url(self, kind, path):
        scheme = "http" if kind in ("http", "closing") else "https"
        return f"{scheme}://127.0.0.1:{self.ports[kind]}{path}"
