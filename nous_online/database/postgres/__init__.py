"""The embedded PostgreSQL server: found, started, reused and stopped; and the test a foreign server must pass."""

from nous_online.database.postgres.capability import require_capable
from nous_online.database.postgres.place import Server, data_directory, default_home
from nous_online.database.postgres.supervisor import ensure, live_url, running, stop

__all__ = ["Server", "data_directory", "default_home", "ensure", "live_url", "require_capable", "running", "stop"]
