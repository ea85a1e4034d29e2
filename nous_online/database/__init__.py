"""PostgreSQL: connections, isolation, migrations, the one write path, and the embedded server."""
