"""An Anthropic API on this machine: for tests that need real sockets, and to try Nous without a key."""

from benchmarks.anthropic_server.models import MODELS, Model
from benchmarks.anthropic_server.plays import BatchPlay, Play, PlayRoute
from benchmarks.anthropic_server.server import LocalAnthropic

__all__ = ["MODELS", "BatchPlay", "LocalAnthropic", "Model", "Play", "PlayRoute"]
