"""The embedded PostgreSQL server: found, started, reused and stopped; and the test a foreign server must pass."""

from nous_online.core.home import default_home
from nous_online.database.postgres.capability import known_holes, require_capable
from nous_online.database.postgres.place import (
    DAGSTER_LOGIN,
    LOGIN,
    NIGHT_LOGIN,
    OPERATOR_LOGIN,
    Server,
    data_directory,
)
from nous_online.database.postgres.supervisor import ensure, live_url, login_url, running, stop

__all__ = [
    "DAGSTER_LOGIN",
    "LOGIN",
    "NIGHT_LOGIN",
    "OPERATOR_LOGIN",
    "Server",
    "data_directory",
    "default_home",
    "ensure",
    "known_holes",
    "live_url",
    "login_url",
    "require_capable",
    "running",
    "stop",
]
