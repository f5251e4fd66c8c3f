"""docs/benchmarks.md from the stored results: no figure is typed by hand."""

# ruff: noqa: E501 - sentences of the page

from __future__ import annotations

from typing import Any

from benchmarks.peers_page import peers
from benchmarks.tables import duration, table
from sulq.server.pacing import GROUPED, SORTED

GOAL = 1.3
Line = dict[str, Any]
Results = dict[str, dict[str, Any]]
ENGINES = {
    "duckdb": ("DuckDB", "user CPU"),
    "postgres": ("PostgreSQL", "CPU of server and client"),
    "spark": ("Spark", "wall time, driver already running"),
}
REASONS = {
    "filtered count": "a comparison also has to leave NaN out and to round the constant as the column, and a statement is"
    " planned anew for each question; with the bounds written out the raw statement costs as much",
    "filtered mean": "a private mean clamps, leaves NaN out and adds integers; the plain one does none of that",
    "clipped sum": "values are rounded to the grid and added as integers",
    "50-group count": "what every question costs besides the scan (a cursor, a statement planned anew, cells decoded) is about 1 ms, which explains small tables only; both raw statements are the same here, so that what the two columns differ by is the error of the measurement",
    "500-group sum and count": "the raw statement neither clamps nor rounds: 2 ns a row for both, but 8 on DuckDB where some values are NULL, as here:"
    " it then asks of each value, at every step, whether it is there. Against the clamped statement see the second column",
    "11 x 11 moments": "every value is clamped and rounded once, which costs PostgreSQL 30 to 50 ns a value, about as much as four products, integer or float; from 29 products on rows are"
    " streamed instead and multiplied here; on Spark integer products cost more than float ones",
    "4 x 4 moments": "three values a row are clamped and rounded, 30 ns each, for nine sums of 12 ns; with the bounds written out the raw statement costs more",
    "sum and count by group": "the raw statement neither clamps nor rounds; and every declared cell is answered, also an empty one, and becomes Python integers,"
    " up to a microsecond a cell",
    "whole ask of a count": "binding, price, a ledger entry synced twice and the noise are about 5 ms of CPU, whatever the rows; a third of it goes into"
    " whether stored answers already tell this one",
    "count after a foreign write, to one without": "the rows are counted once more, each with the age of"
    " its version, if anybody wrote anything to the server since the last question",
}
HEAD = """# Benchmarks

Written by `make bench` from `benchmarks/results/*.json`; `python -m benchmarks --page` renders it again, `python -m benchmarks <part>` measures
one part anew. Ratios were taken within one run: works took turns, the least of each is shown. Other pages: [learning](benchmarks-learning.md),
[SQL](benchmarks-sql.md), [the service](benchmarks-service.md), [profiles](profiles.md).
"""


def document(results: Results) -> str:
    parts = [
        HEAD,
        _measured(results),
        _vault(results.get("vault")),
        *(_engine(results, part) for part in ENGINES),
        _above(results),
        peers(results.get("peers")),
        _studies(results.get("studies")),
        _kernels(results.get("kernels")),
        _stream(results.get("stream")),
        _replicas(results.get("replicas")),
        _simulation(results.get("simulation")),
        _further(results),
    ]
    return "\n".join(part for part in parts if part)


def _studies(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    asked = [line for line in part["lines"] if "ours" in line]
    rows = [
        (
            line["kind"],
            "max_rows < ceiling" if line["cut"] else "nothing",
            duration(line["ours"]),
            f"{line['ours'] / line['raw']:.2f}",
            f"{line['steps']:.2f}",
        )
        for line in asked
    ]
    peaks = {line["what"]: line["mb"] for line in part["lines"] if line["kind"] == "peak memory"}
    persons = asked[0]["persons"]
    return "\n".join(
        [
            "## Studies: several tables about one person\n",
            f"{persons:,} persons with {8 * persons:,} visits and {2 * persons:,} prescriptions, in memory on both sides, against the same statement in plain DuckDB; user CPU."
            " Goal: at most 1.5 for many-to-one and EXISTS. The last column is how many steps of a row that is only counted a row of the study took for each part of its question; the clock reckons with"
            f" {GROUPED}, with {SORTED * GROUPED} where rows of two tables are sorted, for the most rows that are declared, and then takes four times as long (`pacing.GROUPED`, `pacing.MARGIN`).\n",
            table(("question", "cut", "ours", "to raw", "steps a row"), rows),
            f"Peak memory of a process that opens the tables and asks each question once: {peaks['ours']:,.0f} MB, of plain DuckDB {peaks['raw']:,.0f} MB."
            " It is bounded by what is declared: an event table holds at most `at_most` rows (persons x ceiling), in memory, and nothing is written to disk.\n",
        ]
    )


def ratio(value: float) -> str:
    return f"**{value:.2f}**" if value > GOAL else f"{value:.2f}"


def _lines(results: Results, part: str) -> list[Line]:
    found: list[Line] = results.get(part, {}).get("lines", [])
    return found


def _measured(results: Results) -> str:
    if not results:
        return "Nothing is measured yet.\n"
    rows = [
        (
            part,
            one["date"],
            duration(one["seconds"]),
            one["load_before"],
            one["load_after"],
            "full" if one["full"] else "default",
        )
        for part, one in results.items()
    ]
    machines = {str(one["machine"]): one["machine"] for one in results.values()}
    about = []
    for one in machines.values():
        versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items())
        about.append(
            f"{one['cores']} cores ({one['processor']}), {one['memory_gb']} GB, {one['system']}; {versions}."
        )
    noted = (
        ""
        if max(one["load_before"] for one in results.values()) <= 1
        else (
            "A load average above 1 before a part means that other work ran beside it: its wall times are not to be trusted,"
            " ratios a little.\n"
        )
    )
    head = ("part", "measured", "took", "load before", "load after", "sizes")
    return "\n".join(["## The machine\n", *about, "", table(head, rows), noted])


# --- the vault ---


def _vault(result: Line | None) -> str:
    if not result:
        return ""
    lines: list[Line] = result["lines"]
    asked = [line for line in lines if "raw" in line]
    rows = [
        (
            line["kind"],
            f"{line['rows']:,}",
            duration(line["ours"]),
            line["goal"],
            missed(line["ours"] / line["raw"], line["goal"]),
            f"{line['direct'] / line['raw']:.2f}" if "direct" in line else "",
        )
        for line in asked
    ]
    made = [
        (
            f"{line['rows']:,}",
            duration(line["making"]),
            duration(line["opening"]),
            f"{line['bytes'] / 1e6:,.0f} MB",
            f"{line['bytes'] / line['source']:.1f}",
        )
        for line in lines
        if line["kind"] == "making"
    ]
    return "\n".join(
        [
            "## The vault: ours against the raw engine on Parquet\n",
            "[A vault](guides/vault.md) holds the columns clamped and rounded once. Exact integer sums of ours from it, floats of the engine from the Parquet file; user CPU, 2 threads. Above its goal a"
            " ratio is **bold**. The last column is the same question without a vault.\n",
            table(("question", "rows", "ours", "goal", "to raw", "direct to raw"), rows),
            "Counts by group stay above: the Parquet file keeps a dictionary, by which the plain statement looks a group up once a block, while ours does so for each row (2.7 ns); and every declared cell is"
            " answered and becomes Python integers, up to a microsecond a cell.\n",
            "What it costs once (CPU of making it, and of each opening but for the hash of the source), and its size:\n",
            table(("rows", "making", "opening", "size", "to the Parquet file"), made),
        ]
    )


def missed(value: float, goal: float) -> str:
    return f"**{value:.2f}**" if value > goal else f"{value:.2f}"


# --- engines ----------------------------------------------------------------------------------------


def _engine(results: Results, part: str) -> str:
    lines = _lines(results, part)
    if not lines:
        return ""
    name, unit = ENGINES[part]
    if "missing" in lines[0]:
        return f"## {name}\n\nNot measured: {lines[0]['missing']}.\n"
    kinds = [line for line in lines if "raw" in line and "groups" not in line and "clamped" in line]
    rows = [
        (
            line["kind"],
            f"{line['rows']:,}",
            line["threads"],
            duration(line["ours"]),
            ratio(line["ours"] / line["raw"]),
            ratio(line["ours"] / line["clamped"]),
        )
        for line in kinds
    ]
    parts = [
        f"## {name}: ours against the raw engine\n",
        f"Exact integer sums of ours, floats of the engine; {unit}. Goal: at most {GOAL}; above it is **bold**.\n",
        table(("question", "rows", "threads", "ours", "to raw", "to raw with bounds"), rows),
    ]
    grouped = [line for line in lines if "groups" in line]
    if grouped:
        parts.append(
            f"By number of groups, {grouped[0]['rows']:,} rows (100,000 groups are two columns, 1,000 x 100):\n"
        )
        cells = [
            (f"{line['groups']:,}", duration(line["ours"]), ratio(line["ours"] / line["raw"]))
            for line in grouped
        ]
        parts.append(table(("groups", "ours", "to raw"), cells))
    other = [line for line in lines if "raw" in line and line not in kinds and line not in grouped]
    if other:
        cells = [
            (
                line["kind"],
                f"{line['rows']:,}",
                duration(line["ours"]),
                ratio(line["ours"] / line["raw"]),
            )
            for line in other
        ]
        parts.append(table(("besides", "rows", "ours", "to raw"), cells))
    parts += [_flat(kinds), *_opening(lines)]
    return "\n".join(parts)


def _flat(kinds: list[Line]) -> str:
    """How far the ratio of a kind moves over sizes, and over threads."""
    found = []
    for what, fixed in (("rows", "threads"), ("threads", "rows")):
        spread = []
        for kind in dict.fromkeys(line["kind"] for line in kinds):
            mine = [line for line in kinds if line["kind"] == kind]
            top = max(line[fixed] for line in mine) if fixed == "threads" else None
            if top is None:
                sizes = [line["rows"] for line in mine]
                top = max(sizes, key=sizes.count)
            ratios = [line["ours"] / line["raw"] for line in mine if line[fixed] == top]
            if len(ratios) > 1:
                spread.append(max(ratios) / min(ratios))
        if spread:
            found.append(f"over {what} by a factor of at most {max(spread):.2f}")
    return f"Of one kind the ratio to raw moves {' and '.join(found)}.\n" if found else ""


def _opening(lines: list[Line]) -> list[str]:
    """What opening a table takes, and which questions there was no time for."""
    opened = [
        f"{duration(line['ours'])} for {line['rows']:,} rows"
        for line in lines
        if line["kind"] == "opening"
    ]
    said = []
    if opened:
        said.append(f"Opening a table reads every declared column once: {', '.join(opened)}.")
    said += [
        f"Not asked at {line['rows']:,} rows, which would take too long: {', '.join(line['names'])}."
        for line in lines
        if line["kind"] == "unasked" and line["names"]
    ]
    return [" ".join(said) + "\n"] if said else []


def _above(results: Results) -> str:
    """Every place where ours is above the goal, and why."""
    found: dict[tuple[str, str], list[float]] = {}
    for part, (name, _) in ENGINES.items():
        for line in _lines(results, part):
            if "raw" in line and line["ours"] / line["raw"] > GOAL:
                found.setdefault((name, line["kind"]), []).append(line["ours"] / line["raw"])
    if not any(_lines(results, part) for part in ENGINES):
        return ""
    if not found:
        return f"## Above {GOAL}\n\nNowhere.\n"
    rows = [
        (
            name,
            kind,
            f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else f"{ratios[0]:.2f}",
            REASONS.get(kind, ""),
        )
        for (name, kind), ratios in found.items()
    ]
    return f"## Above {GOAL}, and why\n\n" + table(("engine", "question", "to raw", "why"), rows)


# --- kernels, replicas ------------------------------------------------------------------------------


def _kernels(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    memory = next(line for line in part["lines"] if line["kernel"] == "memory")
    rows = [
        (
            line["kernel"],
            f"{line['rows']:,}",
            duration(line["ours"]),
            duration(line["numpy"]),
            ratio(line["ours"] / line["numpy"]),
            f"{line['bytes'] / line['ours'] / 1e9:.2f} GB/s",
            f"{100 * line['bytes'] / line['ours'] / memory['read']:.0f} %",
        )
        for line in part["lines"]
        if line is not memory
    ]
    head = (
        "kernel",
        "rows",
        "ours, exact",
        "NumPy, float",
        "ratio",
        "rows read at",
        "of memory's speed",
    )
    return "\n".join(
        [
            "## Kernels against NumPy and against memory\n",
            f"One core, rows in memory, user CPU. This core reads memory at {memory['read'] / 1e9:.1f} GB/s and copies at"
            f" {memory['copy'] / 1e9:.1f} GB/s (both directions counted). Ours includes rounding every value to the grid,"
            " which is why a Gram matrix costs up to twice the float one: a pass to round, a pass to multiply; the product itself is the same BLAS call.\n",
            table(head, rows),
        ]
    )


def _replicas(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    if "missing" in part["lines"][0]:
        return f"## Replicas on one PostgreSQL ledger\n\nNot measured: {part['lines'][0]['missing']}.\n"
    alone = next(line for line in part["lines"] if line["kind"] == "ledger alone")
    rows = [
        (
            line["replicas"],
            "yes" if line["paced"] else "no",
            line["clients"],
            f"{line['asks']:,}",
            f"{line['per_second']:.0f} /s",
            duration(line["p50"]),
            duration(line["p99"]),
            f"{1000 * line['cpu']:.1f} ms",
            f"{line['memory']:.0f} MB",
        )
        for line in part["lines"]
        if line["kind"] == "replicas"
    ]
    cores = part["machine"]["cores"]
    head = (
        "replicas",
        "paced",
        "clients",
        "questions",
        "answers",
        "p50",
        "p99",
        "server CPU each",
        "memory each",
    )
    return "\n".join(
        [
            "## Replicas on one PostgreSQL ledger\n",
            f"Real servers and a real PostgreSQL that syncs, all with their clients on {cores} cores; 10,000 rows, so that service and ledger are"
            " measured and not the scan. Every question was answered once, and what clients paid is what the ledger says.\n",
            table(head, rows),
            f"The ledger alone, charge and settle from one process: SQLite {alone['sqlite, 1']:.0f} /s with one caller and {alone['sqlite, 64']:.0f} /s"
            f" with 64, PostgreSQL {alone['postgres, 1']:.0f} and {alone['postgres, 64']:.0f} /s. The CPU column times the answers is what the"
            f" cores give: where it is close to {cores}, more replicas on this machine add none. Latency is the queue: clients divided by answers.\n",
        ]
    )


# --- a stream of questions --------------------------------------------------------------------------


def _stream(part: dict[str, Any] | None) -> str:
    """What the k-th question costs beyond the engine's work."""
    if part is None:
        return ""
    lines: list[Line] = [line for line in part["lines"] if "question" in line]
    firsts = [line for line in part["lines"] if "first" in line]
    past = list(dict.fromkeys(line["past"] for line in lines))
    goal = lines[0]["goal"]
    rows = []
    for how, kind in dict.fromkeys((line["how"], line["question"]) for line in lines):
        own = [line for line in lines if (line["how"], line["question"]) == (how, kind)]
        rows.append(
            (
                kind,
                how,
                *(_within(line["ours"], goal) for line in own),
                duration(own[-1]["search"]),
                duration(own[-1]["worst"]),
                duration(own[-1]["engine"]),
            )
        )
    head = (
        "question",
        "asked in",
        *(f"k = {number:,}" for number in past),
        "of it the search",
        "worst",
        "the engine besides",
    )
    begun = ", ".join(f"{duration(line['first'])} at {line['past']:,}" for line in firsts)
    return "\n".join(
        [
            "## The k-th question of a mixed stream\n",
            f"{lines[0]['rows']:,} rows; k answers of mixed kinds are stored (counts, totals, means, histograms, averages by group, distributions, moments), then new"
            " questions are asked. Processor time of a whole answer less the engine's reading of rows: binding, price, the search for what stored answers"
            f" say, ledger, noise and error bars; medians. Goal: at most {duration(goal)}; above it is **bold**. The last three columns are of the largest k.\n",
            table(head, rows),
            "Taking the stored questions in, once for each, when the first questions after opening need them, together with these questions: "
            + begun
            + ".\n",
        ]
    )


def _within(seconds: float, goal: float) -> str:
    return f"**{duration(seconds)}**" if seconds > goal else duration(seconds)


# --- simulation -------------------------------------------------------------------------------------


def _simulation(part: dict[str, Any] | None) -> str:
    if part is None:
        return ""
    lines: list[Line] = part["lines"]

    def of(kind: str) -> list[Line]:
        return [line for line in lines if line["kind"] == kind]

    assumed = {name: value for name, value in lines[0].items() if name != "kind"}
    found = [
        "## To internet scale: a simulation, not a measurement\n",
        "`benchmarks/simulation.py` takes the costs measured above and these assumptions: "
        + "; ".join(f"{name}: {_number(value)}" for name, value in assumed.items())
        + ".\n",
    ]
    if of("spark costs"):
        cost = of("spark costs")[0]
        found += [
            f"**One query over 10^12 rows.** Measured: a row costs a core {1e9 * cost['row']:.1f} ns (clipped sum, ours; {cost['ratio']:.2f} of raw Spark),"
            f" a further file a core {duration(cost['file'])}, a further task the driver {duration(cost['task'])}, the smallest query {duration(cost['start'])}."
            " In local mode the driver's share of a task cannot be told from the executor's: all of an empty task is put on the driver, which is on the safe side.\n",
            table(
                (
                    "cores",
                    "tasks",
                    "a query takes",
                    "cores busy",
                    "driver alone",
                    "first bottleneck",
                ),
                [
                    (
                        f"{line['cores']:,}",
                        f"{line['tasks']:,}",
                        duration(line["seconds"]),
                        f"{100 * line['busy']:.0f} %",
                        duration(line["driver"]),
                        line["bottleneck"],
                    )
                    for line in of("spark")
                ],
            ),
        ]
    if of("ledger costs"):
        cost, demand = of("ledger costs")[0], of("demand")[0]
        needs = [
            (name, f"{value:,.0f}") for name, value in demand.items() if name.startswith("cores")
        ]
        first = max((value, name) for name, value in demand.items() if name.startswith("cores"))[1]
        late = [line for line in of("ledger") if not line["keeps_up"]]
        full = demand["capacity"] / demand["offered"]
        found += [
            f"**10^6 analysts.** They ask {demand['rate']:,.0f} questions in the busiest second. A promise is one account, so a table's ledger is one"
            f" shard and cannot be split; tables can. Measured: a turn takes {duration(cost['turn'])}, each further charge in it {duration(cost['charge'])}.\n",
            table(
                ("table of rank", "charges offered", "p50 wait", "p99 wait", "keeps up"),
                [
                    (
                        f"{line['rank']:,}",
                        f"{line['offered']:,.3g} /s",
                        duration(line["p50"]),
                        duration(line["p99"]),
                        "yes" if line["keeps_up"] else "no",
                    )
                    for line in of("ledger")
                ],
            ),
            table(
                ("needed in the busiest second", ""),
                [*needs, ("ledger, GB a day", f"{demand['gigabytes']:,.1f}")],
            ),
            f"**The first bottleneck is {first.removeprefix('cores for ')}**: 10^12 rows in {_number(assumed['tables'])} tables mean {duration(demand['scan'])} of a core for a"
            f" question, {_about(demand['cores for reading rows, every question a pass'])} cores in the busiest second against {demand['cores for HTTP, prices, noise']:,.0f} for"
            " everything else. Stored answers (repeats, unions and differences are free) and questions asked as one plan (one pass for all) come first; cores"
            f" second. **The next one is the ledger of the table asked most**: one promise is one sequence of turns, at most {_about(demand['capacity'])} charges a second,"
            f" of which {demand['offered']:,.0f} are asked for; "
            + (
                "it cannot keep up."
                if late
                else f"it is full at {full:.1f} times as many analysts."
            )
            + " Remedies: plans (one charge for many questions), larger turns, a faster disk; splitting the table into strata or owners with promises of"
            f" their own. **Then the promise itself**: the table asked most gets {_about(demand['year'])} questions a year. With all of them at (1, 1e-6) together, a"
            f" count has a standard error of {_about(demand['error'])}, {100 * demand['error'] / demand['rows']:.2g} % of a table of {demand['rows']:,.0f} rows; nothing but free answers makes"
            " that last for a second year.\n",
        ]
    return "\n".join(found)


def _about(value: float) -> str:
    """To three figures."""
    return f"{float(f'{value:.3g}'):,.0f}"


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _further(results: Results) -> str:
    found = []
    for part, one in results.items():
        lines = one["lines"]
        if lines and all("what" in line for line in lines):
            rows = [
                (
                    line["what"],
                    f"{line['value']:,.3g}" if line["value"] < 1000 else f"{line['value']:,.0f}",
                    line["unit"],
                )
                for line in lines
            ]
            found.append(f"### {part}\n\n" + table(("", "", ""), rows))
    return "\n".join(["## Further figures\n", *found]) if found else ""
