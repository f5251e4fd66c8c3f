"""+ - * / of estimates: linear where it can be, one ratio where it can be, else from intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

from sulq.noise.ratios import Ends
from sulq.sql.bounds import product_ends, quotient_ends
from sulq.sql.forms import Estimate, Made, Mix, Noisy, Ratio, Term, ratio


def terms_of(x: Estimate) -> tuple[float, tuple[Term, ...]]:
    """x as constant + weighted atoms."""
    if isinstance(x, Mix):
        return x.number, x.terms
    if isinstance(x, Noisy) and not x.draws:
        return x.number, ()
    return 0.0, ((1.0, x),)


def mixed(number: float, terms: tuple[Term, ...]) -> Estimate:
    """constant + weighted atoms as the simplest estimate: what is alike is put together."""
    linear = Noisy.exact(number)
    ratios: dict[object, list[tuple[float, Ratio]]] = {}
    others: dict[int, Term] = {}
    for weight, atom in terms:
        if not weight:
            continue
        if isinstance(atom, Noisy):
            linear = linear.plus(atom, weight)
        elif isinstance(atom, Ratio):
            alike = (atom.bottom.number, tuple(atom.bottom.draws.items()))
            ratios.setdefault(alike, []).append((weight, atom))
        else:
            others[id(atom)] = (others.get(id(atom), (0.0, atom))[0] + weight, atom)
    kept = [_one_bottom(alike) for alike in ratios.values()]
    kept += others.values()
    kept = [(weight, atom) for weight, atom in kept if weight and atom.rests_on]
    if not kept:
        return linear
    if linear.draws:
        return Mix(0.0, ((1.0, linear), *kept))
    if len(kept) == 1 and linear.number == 0 and kept[0][0] == 1:
        return kept[0][1]
    return Mix(linear.number, tuple(kept))


def _one_bottom(alike: list[tuple[float, Ratio]]) -> Term:
    """Ratios with one bottom are one ratio."""
    if len({id(atom) for _, atom in alike}) == 1:
        return sum(weight for weight, _ in alike), alike[0][1]
    top, limits = Noisy.exact(0.0), (0.0, 0.0)
    for weight, atom in alike:
        top = top.plus(atom.top, weight)
        low, high = sorted(weight * end for end in atom.limits)
        limits = (limits[0] + low, limits[1] + high)
    return (1.0, Ratio(top, alike[0][1].bottom, limits)) if top.draws else (0.0, top)


def as_ratio(x: Estimate) -> tuple[Noisy, Noisy] | None:
    """(top, bottom) where x is a ratio of linear forms: a scaled or shifted one is one too."""
    if isinstance(x, Noisy):
        return x, Noisy.exact(1.0)
    number, terms = terms_of(x)
    if len(terms) != 1:
        return None
    weight, atom = terms[0]
    if not isinstance(atom, Ratio):
        return None
    return atom.bottom.times(number).plus(atom.top, weight), atom.bottom


def combine(sign: str, left: Estimate, right: Estimate) -> Estimate:
    """left sign right: linear where it can be, one ratio where it can be, else from intervals."""
    if sign in "+-":
        number, terms = terms_of(left)
        more, others = terms_of(right)
        turn = 1.0 if sign == "+" else -1.0
        weighted = tuple((turn * weight, atom) for weight, atom in others)
        return mixed(number + turn * more, terms + weighted)
    plain = right if isinstance(right, Noisy) and not right.draws else None
    if sign == "*" and plain is None and isinstance(left, Noisy) and not left.draws:
        plain, left = left, right
    if plain is not None and (sign == "*" or plain.number):
        factor = plain.number if sign == "*" else 1 / plain.number
        number, terms = terms_of(left)
        return mixed(number * factor, tuple((weight * factor, atom) for weight, atom in terms))
    if sign == "/" and (one := _one_ratio(left, right)) is not None:
        return one
    return Made((left, right), _VALUES[sign], _BOUNDS[sign])


def _one_ratio(left: Estimate, right: Estimate) -> Estimate | None:
    """(a / n) / (b / n) is a / b; a / (b / n) is one only if a is a number."""
    over, under = as_ratio(left), as_ratio(right)
    if over is None or under is None:
        return None
    if _alike(over[1], under[1]):
        return ratio(over[0], under[0])
    if isinstance(left, Noisy) and not left.draws:
        return ratio(under[1].times(left.number), under[0])
    return None


def _alike(first: Noisy, second: Noisy) -> bool:
    return first.number == second.number and dict(first.draws) == dict(second.draws)


_VALUES: dict[str, Callable[..., float]] = {
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y if y else math.nan,
}
_BOUNDS: dict[str, Callable[..., Ends]] = {"*": product_ends, "/": quotient_ends}

Estimate.combine = combine
