"""S3 on loopback: moto's server, and a proxy before it that loses responses."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moto.server import ThreadedMotoServer

from chainframe._objects import ObjectPath, location

SECRET = "canary-secret"
KEY_ID = "canary-key-id"
TOKEN = "canary-token"
VARIABLES = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": TOKEN,
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


@dataclass
class Bucket:
    """An empty bucket of a server."""

    endpoint: str
    name: str
    options: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.options = self.at(self.endpoint)

    def at(self, endpoint: str, **options: Any) -> dict[str, Any]:
        keys = {"access_key_id": KEY_ID, "secret_access_key": SECRET, "session_token": TOKEN}
        return {"endpoint": endpoint, "region": "us-east-1", "allow_http": True, "max_retries": 2, **keys, **options}

    def url(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    @property
    def objects(self) -> Any:
        path = location(self.url("any"), "path", self.options)
        assert isinstance(path, ObjectPath)
        return path.objects

    def names(self) -> list[str]:
        return sorted(meta["path"] for meta in self.objects.list().collect())

    def read(self, key: str) -> bytes:
        return bytes(self.objects.get(key).bytes())

    def put(self, key: str, data: bytes) -> None:
        self.objects.put(key, data)

    def delete(self, key: str) -> None:
        self.objects.delete(key)


@contextmanager
def s3_server() -> Generator[str]:
    """Yield the address of a server."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class LossyProxy(ThreadingHTTPServer):
    """Forwards requests; of the puts and posts, number `at` has a fault."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.upstream = endpoint.removeprefix("http://")
        self.at, self.fault, self.writes = 0, "", 0
        self.counted = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault_of(self, method: str) -> str:
        if method not in {"PUT", "POST"}:
            return ""
        with self.counted:
            self.writes += 1
            return self.fault if self.writes == self.at else ""


class _Forward(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy = self.server
        assert isinstance(proxy, LossyProxy)
        fault = proxy.fault_of(self.command)
        if fault in {"500", "503"}:
            self.send_response(int(fault))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == "unsent":
            self.close_connection = True
            return
        upstream = http.client.HTTPConnection(proxy.upstream)
        upstream.request(self.command, self.path, body, dict(self.headers))
        response = upstream.getresponse()
        content = response.read()
        upstream.close()
        if fault == "lost":
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in {"connection", "content-length", "transfer-encoding", "server", "date"}:
                self.send_header(name, value)
        length = response.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        pass


for _method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
    setattr(_Forward, f"do_{_method}", _Forward._forward)


@contextmanager
def lossy_proxy(endpoint: str) -> Generator[LossyProxy]:
    with LossyProxy(endpoint) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
