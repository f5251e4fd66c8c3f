"""Messages that name an argument of Python, as the command line spells it."""

from __future__ import annotations

SPELLED = (
    ("say edges=[...] to", "say --edges 0,18,65 to"),
    ("give the token as token=...", "give the token in a file, --token-file"),
    ("give token=..., or set", "give --token-file FILE, or set"),
    ("use https, or say insecure=True if the way is protected otherwise", "use https"),
    ("credits=... or epsilon=..., one of them", "--credits or --epsilon, one of them"),
    ("rows=...", "--rows N"),
    ("no credits= was given", "no --credits was given"),
    ("credits= sets another amount", "--credits sets another amount"),
    ("or use credits=", "or use --credits N"),
    ("`keys` with delta=", "`sulq keys` with --delta "),
    ("give verify= (--ca or SULQ_CA on the command line)", "give --ca (or SULQ_CA)"),
    (
        "no token that is good here was given",
        "this token is not good here: ask the owner for a new one (`sulq grant`), and give it in"
        " SULQ_TOKEN or --token-file",
    ),
)
"""What a message says in Python, and what is typed instead."""


def typed(message: str) -> str:
    """The remedy in words that this caller can type."""
    for said, option in SPELLED:
        message = message.replace(said, option)
    return message
