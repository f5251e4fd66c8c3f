"""Read a SELECT statement: tokens, grammar, scopes, outputs."""
