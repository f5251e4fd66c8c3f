"""The verbs of the service, free of HTTP."""
