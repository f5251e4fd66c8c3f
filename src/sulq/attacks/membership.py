"""Membership (Homer et al. 2008): is a known person in a group of which only means are told?

Everybody has many public attributes, here the bits of `hashed`; the group is who has the secret.
The group's noisy sums lean a little towards each of its members. At most Phi(mu/2) of all guesses
can be right (TB.1): with or without one member are neighbours.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.attacks.asking import Floats, most_parts, part_of, signed, signs
from sulq.attacks.finding import Finding, best_guess, guessed
from sulq.attacks.target import SECRET, Target
from sulq.errors import Refused
from sulq.query.expressions import col
from sulq.query.sum_query import MOST_TERMS, SumQuery


def membership(target: Target, attributes: int | None = None, seed: int = 0) -> Finding:
    """Guess for every person whether it is in the group, from the sums of its attributes.

    The likelihood ratio of "in" against "out" grows with <own signs, sums>; "in" adds one to it
    for each attribute, so half of that is where the guess turns.
    """
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    wanted = most_parts(target.promise, min(attributes or target.promise.credits, MOST_TERMS))
    each = part_of(target.promise, wanted)
    question = SumQuery(tuple(signed(s) for s in range(wanted)), col(SECRET))
    try:
        answer = oracle.ask(question, credits=None if each is None else each * wanted)
    except Refused:
        return guessed("membership", 0, 0, 0.5, Fraction(0))
    sums: Floats = np.ravel(np.asarray(answer.value, dtype=np.float64))
    own = signs(oracle, range(wanted), target.rows)
    leaning = sums @ own / wanted
    right = int(np.sum((leaning > 0.5) == secrets))
    bound = best_guess(target.promise, answer.credits)
    note = f"{wanted} attributes"
    return guessed("membership", right, target.rows, bound, answer.credits, note)
