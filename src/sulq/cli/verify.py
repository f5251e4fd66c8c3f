"""`sulq verify`: receipts, a downloaded chain and the ledger, checked without ever seeing data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import LocalSession, command, named, several
from sulq.cli.output import key_values, print_note, show, show_json, table

if TYPE_CHECKING:
    from sulq.kernel.ledger.export import Chain
    from sulq.policy import TablePolicy

MOST_LISTED = 12
CHAIN = "ledger.jsonl"
"""What `sulq ledger --export` is usually called; taken if it lies beside the receipts."""

FROM = "from `sulq ledger --export` or from Download on the console's Ledger page"

SIGNED = "signed"
"""By the key that was given; whether the chain has it, only a chain can tell."""

What = Annotated[str | None, typer.Argument(metavar="[TABLE|RECEIPTS]", show_default=False)]
Receipts = Annotated[Path | None, typer.Option(help="A file with one receipt to a line.")]
Key = Annotated[
    str | None,
    typer.Option("--key", "--public-key", help="The public key: no ledger is needed then."),
]
ChainFile = Annotated[
    Path | None,
    typer.Option(help="A chain in place of a ledger: of `sulq ledger --export`, or downloaded."),
]
Head = Annotated[str | None, typer.Option(help="A head you noted: the chain must contain it.")]


@command
def verify(
    session: LocalSession,
    what: What = None,
    receipts: Receipts = None,
    key: Key = None,
    chain: ChainFile = None,
    head: Head = None,
) -> None:
    """Check receipts, the chain and its head: `sulq verify receipts.jsonl --head HASH`.

    Needs no data. With --key or --chain it needs no ledger either; without, it reads the chain and
    anchor of the table's ledger (without a table, of every ledger of the policy), also while
    another process holds it, and the vaults of its tables.
    """
    name = what
    if what is not None and receipts is None and (what.endswith(".jsonl") or Path(what).is_file()):
        name, receipts = None, Path(what)
    if all(one is None for one in (name, receipts, key, chain, head)):
        tables = several(session.policy, None)
        if len({str(one.ledger_path) for one in tables}) > 1:
            _verify_each(tables, session.as_json)
            return
    lines = [] if receipts is None else receipt_lines(receipts)
    if chain is None and key is None and receipts is not None and name is None:
        beside = receipts.parent / CHAIN
        chain = beside if beside.is_file() else None
    found, report = _chain(chain, key, head, name, session.policy, bool(lines or receipts))
    upto = None
    if head is not None and found is not None:
        upto = _place(found, head)
        later = found.last - upto
        report["head_is"] = "the last event" if not later else f"{later} events before the last"
    results = [_judged(number, line, found, key, upto) for number, line in enumerate(lines, 1)]
    bad = [result for result in results if result["remedy"]]
    report |= {"receipts": len(lines)}
    if session.as_json:
        show_json({"verified": not bad, **report, "results": results})
    else:
        _show(report, results, bad)
    if bad:
        first = bad[0]
        print_note(f"error: receipt on line {first['line']}: {first['result']}; {first['remedy']}")
        raise typer.Exit(3)


def _chain(
    file: Path | None,
    key: str | None,
    head: str | None,
    name: str | None,
    policy: Path,
    receipts: bool,
) -> tuple[Chain | None, dict[str, Any]]:
    """The chain to judge by, and what is said of it; None: signatures alone count."""
    from sulq.errors import InvalidQuery
    from sulq.kernel.ledger.export import read_chain

    if file is not None:
        found = read_chain(_lines(file, "chain"), key)
        said: dict[str, Any] = {"chain": str(file), **_said(found)}
        if key is None:
            said["note"] = "the key is the file's own word: compare it with the one you know"
        if found.closed:
            said["closed"] = found.closed
            said["links"] = (
                f"computed again after event {found.linked_from}; before it, closed events rest on"
                " the ledger's signature"
            )
        return found, said
    if key is not None:
        if not receipts:
            raise InvalidQuery("--key checks receipts: give --receipts FILE too")
        if head is not None:
            raise InvalidQuery(f"a head is checked in a chain: give --chain FILE too, {FROM}")
        note = f"signatures alone: that they stand in the chain takes --chain FILE, {FROM}"
        return None, {"public_key": key, "note": note}
    if receipts and name is None and not policy.exists():
        raise InvalidQuery(
            f"nothing to check against: there is no {policy}; give --key KEY, or --chain FILE,"
            f" {FROM}"
        )

    tables = several(policy, name)
    if len({str(one.ledger_path) for one in tables}) == 1:  # whichever table is meant
        return _ledger_chain(tables[0])
    return _ledger_chain(named(policy, name))


def _verify_each(tables: list[TablePolicy], as_json: bool) -> None:
    """Verify every ledger of a policy; one that is sick does not stop the others."""
    from sulq.errors import SulqError
    from sulq.kernel.ledger.inspect import is_there

    found: dict[str, dict[str, Any]] = {}
    for ledger in dict.fromkeys(str(one.ledger_path) for one in tables):
        own = [one for one in tables if str(one.ledger_path) == ledger]
        names = ", ".join(one.name for one in own)
        try:
            if not is_there(own[0].ledger_path):
                found |= {one.name: {"verified": None, "note": "not published"} for one in own}
                print_note(f"{names}: not published, so there is nothing to verify")
                continue
            _, report = _ledger_chain(own[0])
            said = {"verified": True, **report}
        except (SulqError, OSError) as error:
            said = {"verified": False, "error": str(error)}
            print_note(f"error: {names}: {error}")
        found |= {one.name: said for one in own}
        if not as_json:
            lines = [("tables", names), ("verified", "yes" if said["verified"] else "no")]
            show(key_values([*lines, *((k, str(v)) for k, v in said.items() if k != "verified")]))
            print()
    whole = all(said["verified"] is not False for said in found.values())
    if as_json:
        show_json({"verified": whole, "tables": found})
    if not whole:
        raise typer.Exit(3)


def _ledger_chain(table: TablePolicy) -> tuple[Chain, dict[str, Any]]:
    from sulq.errors import Refused
    from sulq.kernel.ledger.export import Chain
    from sulq.kernel.ledger.inspect import inspect

    found = inspect(table.ledger_path)
    if found.anchor is None:
        raise Refused(
            "the chain verifies, but its anchor in the state directory is lost or does not"
            " verify: is SULQ_STATE the directory that this ledger was made with? If the anchor is"
            " truly lost, `sulq recover` opens the table at the most that can be proved spent"
        )
    if not found.anchored:
        raise Refused(
            "the chain verifies, but the anchor has seen later events: the ledger was rolled"
            " back; restore the newest one, or run `sulq recover`"
        )
    chain = Chain(found.ledger, found.public_keys, dict(found.hashes), 0, 0)
    return chain, {**_said(chain), "anchor": found.anchor.seq, **_vaults(table)}


def _vaults(table: TablePolicy) -> dict[str, Any]:
    """Which tables of this ledger have a vault; each is read whole, and is what was made."""
    from sulq.database.vault import check_vault

    ledger = str(table.ledger_path)
    own = [one for one in (table, *table.beside) if str(one.ledger_path) == ledger]
    found = [one.name for one in own if check_vault(one.ledger_path, one.name)]
    return {"vaults": ", ".join(found)} if found else {}


def _said(chain: Chain) -> dict[str, Any]:
    return {
        "ledger": chain.ledger,
        "events": len(chain.hashes),
        "head": chain.hashes[chain.last].hex(),
        "public_key": chain.public_keys[-1],
    }


def _place(chain: Chain, head: str) -> int:
    from sulq.errors import Refused

    place = chain.place_of(head)
    if place is None:
        raise Refused(
            "the chain does not contain that head: it is another or an older ledger; ask the owner"
            " for the chain that ends in it"
        )
    return place


def _judged(
    number: int, line: str, chain: Chain | None, key: str | None, upto: int | None
) -> dict[str, Any]:
    from sulq.kernel.ledger.export import GENUINE, REMEDIES, judge_signature

    said, receipt = judge_signature(line, [key or ""]) if chain is None else chain.judge(line, upto)
    if chain is None and said == GENUINE:
        said = SIGNED
    entry = None if receipt is None else receipt.body["seq"]
    return {"line": number, "entry": entry, "result": said, "remedy": REMEDIES.get(said, "")}


def _show(report: dict[str, Any], results: list[dict[str, Any]], bad: list[dict[str, Any]]) -> None:
    verified = "yes" if not bad else f"no: {len(bad)} of {len(results)} receipts do not hold"
    show(
        key_values(
            [("verified", verified), *((name, str(value)) for name, value in report.items())]
        )
    )
    listed = results if len(results) <= MOST_LISTED else bad
    if listed:
        print()
        drawn = table(
            ("line", "entry", "result"),
            [(str(one["line"]), str(one["entry"] or ""), one["result"]) for one in listed],
        )
        drawn.columns[2].justify = "left"
        show(drawn)


def receipt_lines(path: Path) -> list[str]:
    """The receipts in a file, one to a line; a receipts journal has marks between them."""
    found = [line for line in _lines(path, "receipts") if not line.startswith('{"mark":')]
    if not found:
        print_note(f"{path} holds no receipts")
    return found


def _lines(path: Path, what: str) -> list[str]:
    from sulq.errors import InvalidQuery

    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise InvalidQuery(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise InvalidQuery(f"{path} is not a file of {what}") from None
    return [line for line in text.splitlines() if line.strip()]
