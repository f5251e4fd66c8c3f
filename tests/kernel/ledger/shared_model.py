"""A small model of replicas on one ledger, for a checker that visits every state it can reach.

It has what docs/proofs/shared-ledger.md argues about and nothing else: a server with a chain, turns
and transactions whose outcome may be lost; replicas with a view in memory and a mark on disk; one
client each, who asks, computes, stores and asks again. A hash is stood for by the whole prefix.
`Rules` switches rules off: then the checker must find what goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Event = tuple[str, ...]  # ("charge", q), ("answer", q, value), ("burn",)
Chain = tuple[Event, ...]


@dataclass(frozen=True)
class Rules:
    """What the protocol does; False is a protocol with that rule left out."""

    lock: bool = True  # one turn at a time
    numbers: bool = True  # the server refuses a number that is taken
    look: bool = True  # a turn begins with what others wrote
    mark: bool = True  # a chain without what the mark has seen is refused
    anchor: bool = True  # the mark moves before anything is told
    once: bool = True  # a stored answer is never stored again
    doubt: bool = True  # a lost commit is looked up, not believed


@dataclass(frozen=True)
class Bounds:
    cap: int = 1
    wanted: tuple[tuple[str, ...], ...] = (("a", "b"), ("b", "a"))
    crashes: int = 1
    losses: int = 1  # of connections, and transactions that the server rolls back
    restores: int = 0
    seen: bool = False  # only backups that every replica has seen more than


class Turn(NamedTuple):
    """A transaction on the server; with `sent` the server alone decides its outcome."""

    owner: int
    base: int  # the length of the chain that was looked at
    sent: Chain | None
    heard: bool = True  # somebody waits for the outcome


class Replica(NamedTuple):
    view: Chain | None  # None: not running
    mark: Chain  # on disk
    phase: str = "idle"
    job: tuple[str, ...] = ()  # ("charge", q) or ("settle", q, value), or ("read",)
    done: int = 0  # questions its client is done with
    draws: int = 0
    told: frozenset[tuple[str, str]] = frozenset()
    ruined: bool = False


class State(NamedTuple):
    chain: Chain
    backup: Chain | None
    turns: frozenset[Turn]
    replicas: tuple[Replica, ...]
    crashes: int
    losses: int
    restores: int

    def put(self, number: int, replica: Replica) -> State:
        return self._replace(
            replicas=(*self.replicas[:number], replica, *self.replicas[number + 1 :])
        )


class Broken(AssertionError):
    """An invariant does not hold."""


def answers(chain: Chain) -> dict[str, str]:
    """The stored answers; the last one counts where a chain has two."""
    return {event[1]: event[2] for event in chain if event[0] == "answer"}


def charged(chain: Chain) -> list[str]:
    return [event[1] for event in chain if event[0] == "charge"]


def burnt(chain: Chain) -> bool:
    return ("burn",) in chain


def open_records(chain: Chain) -> set[str]:
    """Charged and not answered; a recovery drops those before it."""
    last = max((k for k, event in enumerate(chain) if event == ("burn",)), default=-1)
    return set(charged(chain[last + 1 :])) - answers(chain).keys()


class Model:
    def __init__(self, bounds: Bounds, rules: Rules | None = None) -> None:
        self.bounds, self.rules = bounds, rules or Rules()

    def start(self) -> State:
        replicas = tuple(Replica((), ()) for _ in self.bounds.wanted)
        b = self.bounds
        return State((), None, frozenset(), replicas, b.crashes, b.losses, b.restores)

    # -- what may happen next ---------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for number, replica in enumerate(state.replicas):
            for name, after in self._replica(state, number, replica):
                yield f"{name} {number}", after
        for turn in state.turns:
            if turn.sent is not None:
                yield f"apply {turn.owner}", self._applied(state, turn)
                if state.losses:
                    yield f"roll back {turn.owner}", self._rolled_back(state, turn)
        if state.restores:
            if state.backup is None:
                yield "back up", state._replace(backup=state.chain)
            elif not state.turns and self._restorable(state):
                yield "restore", state._replace(chain=state.backup, restores=state.restores - 1)

    def _restorable(self, state: State) -> bool:
        assert state.backup is not None
        lengths = [len(replica.mark) for replica in state.replicas]
        return not self.bounds.seen or min(lengths) > len(state.backup)

    def _replica(self, state: State, me: int, r: Replica) -> Iterator[tuple[str, State]]:
        if r.view is None:
            yield "open", self._opened(state, me, r)
            return
        if state.crashes and not r.ruined:
            yield "crash", self._crashed(state, me, r)
        if r.ruined:
            if not state.turns:
                yield "recover", self._recovered(state, me, r)
        elif r.phase == "idle":
            wanted = self.bounds.wanted[me]
            job = r.job or (("charge", wanted[r.done]) if r.done < len(wanted) else ())
            if job and (not self.rules.lock or not state.turns):
                yield "begin", self._begun(state, me, r._replace(job=job))
            if r.view != state.chain and not r.job:
                yield "read", self._looked(state, me, r._replace(job=("read",)), "anchor")
        elif r.phase == "decide":
            yield "decide", self._decided(state, me, r)
        elif r.phase == "waiting" and state.losses:
            yield "lose", self._lost(state, me, r)
        elif r.phase == "anchor":
            moved = r._replace(mark=r.view) if self.rules.anchor else r
            yield "anchor", state.put(me, moved._replace(phase="tell"))
        elif r.phase == "tell":
            yield "tell", self._told(state, me, r)

    # -- a replica --------------------------------------------------------------------------------

    def _opened(self, state: State, me: int, r: Replica) -> State:
        if self.rules.mark and state.chain[: len(r.mark)] != r.mark:
            return state.put(me, r._replace(view=(), ruined=True))
        mark = state.chain if self.rules.anchor else r.mark
        return state.put(me, r._replace(view=state.chain, mark=mark, phase="idle"))

    def _crashed(self, state: State, me: int, r: Replica) -> State:
        """What was sent goes its own way; a turn without it ends with the connection."""
        turns = frozenset(
            turn._replace(heard=False) if turn.owner == me else turn
            for turn in state.turns
            if turn.owner != me or turn.sent is not None
        )
        gone = r._replace(view=None, phase="idle", job=())
        return state._replace(turns=turns, crashes=state.crashes - 1).put(me, gone)

    def _looked(self, state: State, me: int, r: Replica, phase: str) -> State:
        assert r.view is not None
        if self.rules.mark and state.chain[: len(r.view)] != r.view:
            own = frozenset(turn for turn in state.turns if turn.owner != me)
            return state._replace(turns=own).put(me, r._replace(ruined=True, job=()))
        return state.put(me, r._replace(view=state.chain, phase=phase))

    def _begun(self, state: State, me: int, r: Replica) -> State:
        taken = state._replace(turns=state.turns | {Turn(me, len(state.chain), None)})
        if not self.rules.look:
            return taken.put(me, r._replace(phase="decide"))
        return self._looked(taken, me, r, "decide")

    def _decided(self, state: State, me: int, r: Replica) -> State:
        """On the view alone. What is to be written is sent; without it the turn ends here."""
        assert r.view is not None
        kind, question, *value = r.job
        event: Event | None = None
        job: tuple[str, ...] = r.job
        if question in answers(r.view) and (kind == "charge" or self.rules.once):
            pass
        elif kind == "settle":
            if question in open_records(r.view) or not self.rules.once:
                event = ("answer", question, *value)
            else:
                job = ("refused",)
        elif question not in open_records(r.view):
            if len(charged(r.view)) < self.bounds.cap and not burnt(r.view):
                event = ("charge", question)
            else:
                job = ("refused",)
        others = frozenset(
            turn for turn in state.turns if turn.owner != me or turn.sent is not None
        )
        if event is None:
            return state._replace(turns=others).put(me, r._replace(job=job, phase="anchor"))
        sent = Turn(me, len(r.view), (event,))
        return state._replace(turns=others | {sent}).put(me, r._replace(phase="waiting"))

    def _lost(self, state: State, me: int, r: Replica) -> State:
        """The connection breaks after the commit was sent: nobody here knows its outcome."""
        assert r.view is not None
        turns = frozenset(
            turn._replace(heard=False) if turn.owner == me else turn for turn in state.turns
        )
        after = state._replace(turns=turns, losses=state.losses - 1)
        if self.rules.doubt:
            # Only what the mark has seen is still believed; the client asks again, with a new draw.
            return after.put(me, r._replace(view=r.mark, phase="idle", job=()))
        sent = next(turn.sent for turn in state.turns if turn.owner == me and turn.heard)
        return after.put(me, r._replace(view=r.view + (sent or ()), phase="anchor"))

    def _told(self, state: State, me: int, r: Replica) -> State:
        """The client is answered; here the invariants about what is told are checked."""
        assert r.view is not None
        kind, *rest = r.job
        stored = answers(r.view)
        idle = r._replace(phase="idle", job=())
        if kind == "read":
            return state.put(me, self._tell(idle, set(stored.items())))
        if kind == "refused":
            return state.put(me, idle._replace(done=r.done + 1))
        question = rest[0]
        if question in stored:
            told = self._tell(idle, {(question, stored[question])})
            return state.put(me, told._replace(done=r.done + 1))
        drawn = f"{me}.{r.draws}"  # computed under the charge, not told
        job = ("settle", question, drawn)
        return state.put(me, r._replace(phase="idle", job=job, draws=r.draws + 1))

    def _tell(self, r: Replica, said: set[tuple[str, str]]) -> Replica:
        assert r.view is not None
        if not burnt(r.view) and not r.told <= answers(r.view).items():
            raise Broken("a replica tells from a chain that lacks what it told before")
        return r._replace(told=r.told | said)

    def _recovered(self, state: State, me: int, r: Replica) -> State:
        chain = (*state.chain, ("burn",))
        sound = r._replace(view=chain, mark=chain, ruined=False, phase="idle", job=())
        return state._replace(chain=chain).put(me, sound)

    # -- the server -------------------------------------------------------------------------------

    def _applied(self, state: State, turn: Turn) -> State:
        assert turn.sent is not None
        if self.rules.numbers and turn.base != len(state.chain):
            return self._rolled_back(state, turn, cost=0)
        chain = state.chain + turn.sent
        after = state._replace(chain=chain, turns=state.turns - {turn})
        if not turn.heard:
            return after
        r = state.replicas[turn.owner]
        view = (r.view or ()) + turn.sent
        return after.put(turn.owner, r._replace(view=view, phase="anchor"))

    def _rolled_back(self, state: State, turn: Turn, cost: int = 1) -> State:
        after = state._replace(turns=state.turns - {turn}, losses=state.losses - cost)
        if not turn.heard:
            return after
        r = state.replicas[turn.owner]
        return after.put(turn.owner, r._replace(view=r.mark, phase="idle", job=()))

    # -- what must hold ---------------------------------------------------------------------------

    def check(self, state: State, *, everywhere: bool) -> None:
        """`everywhere`: also across replicas, which needs that no unseen backup is restored."""
        spent = charged(state.chain)
        if len(spent) > self.bounds.cap and not burnt(state.chain):
            raise Broken("more is charged than the cap")
        if len(set(spent)) < len(spent) and not burnt(state.chain):
            raise Broken("a question is charged twice")
        for r in state.replicas:
            if len({question for question, _ in r.told}) < len(r.told):
                raise Broken("a replica told two values of one question")
        if not everywhere:
            return
        told = frozenset[tuple[str, str]]().union(*(r.told for r in state.replicas))
        questions = {question for question, _ in told}
        if len(questions) < len(told):
            raise Broken("two values of one question were told")
        if len(questions) > self.bounds.cap:
            raise Broken("more was told than the cap pays for")
        if not burnt(state.chain) and not state.restores < self.bounds.restores:
            stored = answers(state.chain)
            if not told <= stored.items():
                raise Broken("something was told that is not stored")
            if not questions <= set(spent):
                raise Broken("something was told that was not charged")


class Explored(NamedTuple):
    states: int
    finished: int  # of them: every client was answered or refused
    stuck: int  # of them: no way on leads to a finished one


def explore(model: Model, *, everywhere: bool = True) -> Explored:
    """Visit every reachable state; `Broken` with the steps that lead there."""
    start = model.start()
    parent: dict[State, tuple[State, str] | None] = {start: None}
    before: dict[State, list[State]] = {}
    todo = [start]
    for state in todo:
        assert len(todo) < 400_000, "the model does not end"
        try:
            model.check(state, everywhere=everywhere)
            found = list(model.steps(state))
        except Broken as broken:
            raise Broken(f"{broken}: {', '.join(path_to(state, parent))}") from None
        for name, after in found:
            before.setdefault(after, []).append(state)
            if after not in parent:
                parent[after] = (state, name)
                todo.append(after)
    finished = [state for state in todo if _finished(model, state)]
    reached, back = set(finished), list(finished)
    for state in back:
        for earlier in before.get(state, ()):
            if earlier not in reached:
                reached.add(earlier)
                back.append(earlier)
    return Explored(len(todo), len(finished), len(todo) - len(reached))


def _finished(model: Model, state: State) -> bool:
    pairs = zip(state.replicas, model.bounds.wanted, strict=True)
    return all(replica.done == len(wanted) for replica, wanted in pairs)


def path_to(state: State, parent: dict[State, tuple[State, str] | None]) -> list[str]:
    steps: list[str] = []
    while (found := parent[state]) is not None:
        state, name = found
        steps.append(name)
    return steps[::-1]
