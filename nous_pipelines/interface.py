"""Dagster's own interface: started in the background or in front, always on 127.0.0.1."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from nous_online import background
from nous_online.errors import Unavailable
from nous_pipelines.instance import prepare_dagster

HOST = "127.0.0.1"
PORT = 3000
READY_TIMEOUT_S = 90.0
NAME = "dagster"


def command(port: int) -> list[str]:
    """Return how to start the interface and the daemon."""
    return [sys.executable, "-m", "dagster", "dev", "-m", "nous_pipelines.definitions", "-h", HOST, "-p", str(port)]


def start_interface(home: Path) -> str:
    """Start the interface in the background and return its address; `wait_for` tells when it answers there."""
    prepare_dagster()
    known = background.running(NAME, home=home)
    port = port_of(known.cmdline()) if known is not None else free_port(PORT)
    background.start(NAME, command(port), home=home, environment={"PYTHONWARNINGS": "ignore"})
    return f"http://{HOST}:{port}"


def run_interface(port: int = PORT) -> int:
    """Run the interface in front until Ctrl-C, and return its exit code."""
    prepare_dagster()
    process = subprocess.Popen(  # noqa: S603 (the command is ours)
        command(free_port(port)),
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        start_new_session=True,
        preexec_fn=background.listen_to_signals,  # noqa: PLW1509 (started from one thread)
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        import psutil

        background.end(psutil.Process(process.pid))
        return 0


def wait_for(address: str, *, home: Path) -> None:
    """Wait until the interface answers; raise `Unavailable` when it ends or stays silent."""
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        if background.running(NAME, home=home) is None:
            break
        try:
            if httpx.get(f"{address}/server_info", timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise Unavailable(f"the interface did not come up at {address}; see {home / 'background' / f'{NAME}.log'}")


def port_of(arguments: list[str]) -> int:
    """Return the port a running interface was started with."""
    return int(arguments[arguments.index("-p") + 1])


def free_port(wanted: int) -> int:
    """Return `wanted` if it is free, else another one that is."""
    for port in (wanted, 0):
        with socket.socket() as candidate:
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            return candidate.getsockname()[1]
    raise Unavailable(f"no port is free on {HOST}")
