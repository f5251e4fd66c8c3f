"""Who may ask: tokens, roles, grants, rate limits."""
