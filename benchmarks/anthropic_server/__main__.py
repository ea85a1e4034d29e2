"""`python -m benchmarks.anthropic_server`: the local API until Ctrl-C, to try Nous without a key."""

from __future__ import annotations

import argparse
import threading
from contextlib import suppress

from benchmarks.anthropic_server.server import LocalAnthropic
from nous_online.interfaces.cli.output import show, show_note


def main() -> None:
    """Listen until interrupted, having said what to put into the environment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anthropic_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="where to listen on 127.0.0.1; any free port by default")
    with LocalAnthropic(port=parser.parse_args().port) as server, suppress(KeyboardInterrupt):
        show(f"export ANTHROPIC_BASE_URL={server.url}")
        show("export ANTHROPIC_API_KEY=local")
        show_note("Nothing leaves this machine, and nothing is charged. Ctrl-C ends it.")
        threading.Event().wait()


if __name__ == "__main__":
    main()
