"""The service: one process that answers questions about tables over HTTP."""
