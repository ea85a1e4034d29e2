"""A model on this machine that says turn by turn what a test wrote down, tool uses included, and keeps what it read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


def turn(*content: dict[str, Any], stop_reason: str) -> bytes:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": content,
        "stop_reason": stop_reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    return json.dumps(message).encode()


def use(tool: str, **given: Any) -> bytes:
    """Return a turn in which the model uses one tool."""
    block = {"type": "tool_use", "id": f"toolu_{tool}", "name": tool, "input": given}
    return turn(block, stop_reason="tool_use")


def say(text: str) -> bytes:
    """Return the last turn of a model."""
    return turn({"type": "text", "text": text}, stop_reason="end_turn")


@contextmanager
def model(*turns: bytes) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve what a model says turn by turn: the address, and what it was sent."""
    asked: list[dict[str, Any]] = []

    class Exchange(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            answer = turns[len(asked) - 1]
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Exchange) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listener.server_port}", asked
        listener.shutdown()
        thread.join()
