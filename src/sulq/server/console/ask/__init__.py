"""The console's page for asking questions."""
