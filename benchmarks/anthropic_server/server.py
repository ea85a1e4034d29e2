"""The local server's sockets: it listens on this machine alone, and spoils its answers where a play says so."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, cast

from benchmarks.anthropic_server.answers import answer as honest_answer
from benchmarks.anthropic_server.endpoints import Api, Arrived, Response, answered, arrived
from benchmarks.anthropic_server.models import MODELS, Model
from benchmarks.anthropic_server.plays import BatchPlay, Play, PlayRoute, Rule, Script
from benchmarks.anthropic_server.refusals import ApiError
from benchmarks.anthropic_server.stored_batches import StoredBatch
from nous_online.language.claude.replies import Request

HOST = "127.0.0.1"
PIECES_A_SECOND = 50


class LocalAnthropic:
    """An Anthropic API on this machine, for as long as its context lasts; it costs nothing and says what it is told.

    >>> import anthropic
    >>> question = {"model": "claude-haiku-5-5", "max_tokens": 200, "messages": [{"role": "user", "content": "hello"}]}
    >>> with LocalAnthropic() as server, anthropic.Anthropic(api_key="any", base_url=server.url) as client:
    ...     server.play(Play(status=529), Play(text="a second try"), route=PlayRoute.MESSAGE)
    ...     client.messages.create(**question).content[-1].text
    'a second try'

    What becomes of batches is said for each of them, or for each item:

    >>> with LocalAnthropic() as server, anthropic.Anthropic(api_key="any", base_url=server.url) as client:
    ...     server.play_batches(BatchPlay(looks=1, items={1: Play(outcome="expired")}, is_shuffled=True))
    ...     batch = client.messages.batches.create(
    ...         requests=[{"custom_id": name, "params": question} for name in ("one", "two")]
    ...     )
    ...     looks = [client.messages.batches.retrieve(batch.id).processing_status for _ in range(2)]
    ...     looks, {each.custom_id: each.result.type for each in client.messages.batches.results(batch.id)} == {
    ...         "one": "succeeded", "two": "expired"
    ...     }
    (['in_progress', 'ended'], True)

    Without a script it answers properly: `answer` gives the text of a message. `clock` tells the time by which batches
    expire and prompts leave the cache. When the context ends every connection is closed and every thread has ended.
    """

    def __init__(
        self,
        *,
        answer: Callable[[Request], str] = honest_answer,
        models: Sequence[Model] = MODELS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        port: int = 0,
    ) -> None:
        self.requests: list[Arrived] = []
        """What arrived, in order, whatever became of it."""
        self.clock = clock
        self._api = Api(models=models, answer=answer)
        self._script = Script()
        self._lock = threading.Lock()
        self._listener = Listener(self, port=port)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,), name="local-anthropic")
        self.url = self._api.url = f"http://{HOST}:{self._listener.server_port}"
        """Where it listens: the base URL of a client."""

    def __enter__(self) -> LocalAnthropic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.hang_up()
        self._thread.join()
        self._listener.server_close()

    @property
    def batches(self) -> dict[str, StoredBatch]:
        """The batches that were created and not deleted, by id, the oldest first."""
        return dict(self._api.batches)

    @property
    def answer(self) -> Callable[[Request], str]:
        """What gives the text of every answer no play speaks of."""
        return self._api.answer

    def play(
        self, *plays: Play, route: PlayRoute | None = None, when: Callable[[Request], bool] = lambda _request: True
    ) -> None:
        """Say how the next requests are answered, one play each, by default of any route."""
        self._script.add(Rule(deque(plays), route, when, lasts=False))

    def play_always(
        self, play: Play, *, route: PlayRoute | None = None, when: Callable[[Request], bool] = lambda _request: True
    ) -> None:
        """Say how every request is answered that no earlier play speaks of."""
        self._script.add(Rule(deque([play]), route, when, lasts=True))

    def play_batches(self, *plays: BatchPlay) -> None:
        """Say what becomes of the next batches, one play each; the last one holds for all that follow."""
        self._api.next_batches[:] = plays

    def answer_with(self, answer: Callable[[Request], str]) -> None:
        """Let another function give the text of every answer from now on."""
        self._api.answer = answer

    def stop_playing(self) -> None:
        """Forget every play that is left, and answer properly from now on."""
        self._script.clear()
        self.play_batches(BatchPlay())

    def end_batches(self) -> None:
        """End every batch now, whatever its play says."""
        self._api.end_batches(at=self.clock())

    def forget_batches(self) -> None:
        """Know of no batch any more, whatever was created."""
        self._api.batches.clear()

    def asked(self, route: PlayRoute = PlayRoute.MESSAGE) -> list[Request]:
        """Return the bodies of the requests of one route, in the order they arrived."""
        return [request.params for request in self.requests if request.route is route]

    def respond(self, request: Arrived) -> tuple[Response, Play]:
        """Return the answer to a request and how it is to be sent."""
        with self._lock:
            self.requests.append(request)
            play = self._script.next(request.route, request.params)
        self._listener.closing.wait(play.delay_s)
        return self.answer_to(request, play), play

    def read(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Arrived:
        """Return what a request asks for; raise `ApiError` for a path nobody serves."""
        return arrived(method, path, headers, body, at=self.clock())

    def answer_to(self, request: Arrived, play: Play) -> Response:
        """Return the answer to a request, before its play spoils it."""
        return self._api.respond(request, play)


class Listener(ThreadingHTTPServer):
    """Accepts connections, each in a thread that ends with the server."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, owner: LocalAnthropic, *, port: int) -> None:
        self.owner = owner
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        super().__init__((HOST, port), Exchange)

    def server_bind(self) -> None:
        """Bind without asking a resolver for the name of this machine, as an HTTP server otherwise does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection and keep it, to be able to close it."""
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Accept nothing more and end every connection, whatever it waits for."""
        self.closing.set()
        self.shutdown()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Exchange(BaseHTTPRequestHandler):
    """One connection: requests in, answers out, whole or as a play spoils them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def listener(self) -> Listener:
        """The server it came in by."""
        return cast("Listener", self.server)

    def do_POST(self) -> None:
        """Answer a POST."""
        self._exchange()

    do_GET = do_DELETE = do_POST  # noqa: N815 (the names http.server calls)

    def handle(self) -> None:
        """Serve a connection until either side ends it."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the signature of http.server)
        """Say nothing: `requests` tells what arrived."""

    def _exchange(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        owner = self.listener.owner
        try:
            request = owner.read(self.command, self.path, dict(self.headers), body)
        except ApiError as error:
            self._send(answered(error.as_json(), error.status, Play()), Play())
            return
        response, play = owner.respond(request)
        self._send(response, play)

    def _send(self, response: Response, play: Play) -> None:
        """Send an answer as its play says; what is announced is always the whole of it."""
        if play.is_lost or self.listener.closing.is_set():
            self.close_connection = True
            return
        body = response.body if play.body is None else play.body
        self.send_response(response.status)
        for name, value in ({"content-length": str(len(body))} | dict(response.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        self._send_body(body, play)

    def _send_body(self, body: bytes, play: Play) -> None:
        ends_at = min((at for at in (play.cut_at, play.stall_at) if at is not None), default=len(body))
        for piece in pieces(body[:ends_at], play.drip):
            self.wfile.write(piece)
            if play.drip and self.listener.closing.wait(len(piece) / play.drip):
                break
        if play.stall_at is not None:
            self.listener.closing.wait()
        if ends_at < len(body):
            self.close_connection = True


def pieces(body: bytes, drip: float | None) -> list[bytes]:
    """Return a body in pieces small enough to come at `drip` bytes a second; whole, where nothing drips."""
    size = len(body) if drip is None else max(1, int(drip / PIECES_A_SECOND))
    return [body[start : start + size] for start in range(0, len(body), max(1, size))]
