"""The PostgreSQL wire protocol, version 3: a door to the same questions as POST /sql."""
