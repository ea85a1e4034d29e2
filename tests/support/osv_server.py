"""A server on this machine that speaks OSV's API: it knows of what a test wrote down."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def osv(known: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Serve `known` vulnerabilities, by package what mends them; yield the address and who was asked about."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["content-length"])))
            name = question["package"]["name"]
            asked.append(f"{name} {question['version']}")
            body = json.dumps({"vulns": [entry(name, known[name])]} if name in known else {}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (of the base class)
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def entry(name: str, fixed: str) -> dict[str, Any]:
    """Return a vulnerability in the form of OSV."""
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}]
    affected = [{"package": {"name": name, "ecosystem": "PyPI"}, "ranges": ranges}]
    return {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "summary": "It leaks.", "affected": affected}
