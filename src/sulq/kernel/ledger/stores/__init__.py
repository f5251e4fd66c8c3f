"""Where a chain of events is kept: a SQLite file or a PostgreSQL server."""
