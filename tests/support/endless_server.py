"""A server that writes what a test wrote down, byte by byte, however far it is from HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FOR_EVER = 1000


@contextmanager
def speaking(*pieces: bytes, pause_s: float, count: int = FOR_EVER) -> Iterator[tuple[str, threading.Event]]:
    """Serve one connection: send pieces one by one, the last one `count` times; tell when it was hung up on."""
    listener, hung_up = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            try:
                for piece in (*pieces[:-1], *[pieces[-1]] * count):
                    connection.sendall(piece)
                    time.sleep(pause_s)
            except OSError:
                hung_up.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", hung_up
    finally:
        thread.join()
        listener.close()
