"""A TCP proxy on the loopback that misbehaves on command: it can delay, freeze, cut and refuse what passes through."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK_BYTES = 65_536
LIFETIME_S = 60.0  # a proxy that was forgotten ends by itself
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s; closing then sends RST


class FaultProxy:
    """Stands between a client and a server; passes everything until told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._flows = threading.Event()
        self._flows.set()
        self._delay_s = 0.0
        self._answers_left: int | None = None
        self._then = self.freeze
        self._refuses = False
        self._ends_at = time.monotonic() + LIFETIME_S
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.1)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def before(cls, url: str) -> Self:
        """Stand before the server that a PostgreSQL URL names."""
        address = conninfo_to_dict(url)
        return cls(str(address["host"]), int(str(address["port"])))

    def url(self, url: str) -> str:
        """Return how to reach the server through this proxy, as somebody who is not told that it is an embedded one."""
        address = conninfo_to_dict(url)
        passwords = Path(str(address.pop("passfile"))).read_text("utf-8")
        address |= {"host": "127.0.0.1", "port": self.port, "password": passwords.splitlines()[0].rpartition(":")[2]}
        return make_conninfo("", **address)

    def live_for(self, seconds: float) -> None:
        """Stand there for so long, where many tests share it."""
        self._ends_at = time.monotonic() + seconds

    def freeze(self) -> None:
        """Keep every byte, and every new connection, until `thaw`; connections stay open."""
        self._flows.clear()

    def freeze_after(self, answers: int) -> None:
        """Let so many more chunks of the server through, then freeze: an answer stays away when others have come."""
        self._answers_left, self._then = answers, self.freeze

    def cut_after(self, answers: int) -> None:
        """Let so many more chunks of the server through, then reset every connection."""
        self._answers_left, self._then = answers, self.cut

    def thaw(self) -> None:
        """Let everything flow again, what was kept included."""
        self._answers_left = None
        self._flows.set()

    def delay(self, seconds: float) -> None:
        """Hold each chunk back by so many seconds."""
        self._delay_s = seconds

    def cut(self) -> None:
        """Reset every connection."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def refuse(self) -> None:
        """Reset every connection, and each new one at once, until `admit`."""
        self._refuses = True
        self.cut()

    def admit(self) -> None:
        """Accept connections again."""
        self._refuses = False

    def close(self) -> None:
        """End the proxy and all its threads."""
        self._ends_at = 0.0
        self._flows.set()
        self._listener.close()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _accept(self) -> None:
        while time.monotonic() < self._ends_at:
            try:
                client = self._listener.accept()[0]
            except TimeoutError:
                continue
            except OSError:
                return
            self._sockets.append(client)
            if self._refuses:
                self.cut()
                continue
            server = self._reached()
            self._sockets.append(server)
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, target, source is server), daemon=True).start()

    def _reached(self) -> socket.socket:
        host, port = self._server
        if not host.startswith("/"):
            return socket.create_connection(self._server)
        reached = socket.socket(socket.AF_UNIX)
        reached.connect(f"{host}/.s.PGSQL.{port}")
        return reached

    def _pump(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:  # noqa: FBT001 (a thread's)
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                if is_answer and self._answers_left is not None:
                    self._answers_left -= 1
                    if self._answers_left < 0:
                        self._then()
                self._flows.wait(LIFETIME_S)
                time.sleep(self._delay_s)
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
