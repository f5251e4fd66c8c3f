"""What a server replies. Credits come twice: as a number for people and exactly as text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sulq.wire.bodies import Exact

Number = float | int | None
"""None where it is not finite or not known."""
Nested = Number | list[Any]
"""One number, or as many as the answer has cells, in nested lists."""
LawJson = dict[str, str | int]


class Reply(BaseModel):
    """Clients ignore fields that they do not know: a later server may add some."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="null")
    version: Literal[1] = 1
    facts_id: Annotated[str, Field(description="as GET schema: what it is read by")] = ""


class ReceiptJson(BaseModel):
    model_config = ConfigDict(frozen=True)
    receipt: dict[str, Any]
    signature: str


class MixtureJson(BaseModel):
    """Of each sum: [receipt, place, weight as text, number of its law].

    `apart`: each sum has draws of its own, and is read as a fresh one.
    """

    model_config = ConfigDict(frozen=True)
    laws: list[LawJson]
    sums: list[list[tuple[int, int, str, int]]]
    exact: bool
    apart: bool = False


class AnswerReply(Reply):
    """`values` are the noisy integers, `noise` the law of each term: all else follows from them.

    The figures are for people and other languages; they are None unless they were asked for.
    """

    kind: str
    value: Nested = None
    standard_error: Nested = None
    low: Nested = None
    high: Nested = None
    confidence: float = 0.95
    keys: list[Any] = []
    axes: list[str] = []
    credits: float
    credits_exact: Exact
    receipt: ReceiptJson | None = None
    note: str = ""
    question: Annotated[str, Field(description="canonical text")] = ""
    noise: list[LawJson] = []
    values: Annotated[list[str], Field(description="whole numbers")] = []
    sources: list[int] = []
    guarantee: str = ""
    terms: str = ""
    promised: Annotated[bool, Field(description="the table's promise covers it")] = True
    whole: Annotated[bool, Field(description="sums on the columns' own lattice")] = False
    mixture: MixtureJson | None = None


class AnswersReply(Reply):
    """Of a plan or an exact batch, in order."""

    answers: list[AnswerReply]
    credits: float
    credits_exact: Exact


class QuoteColumn(BaseModel):
    name: str
    half_width: Number = None
    rank: Annotated[Number, Field(description="of a quantile: how far off, in rows")] = None
    unit: str = ""
    span: Annotated[
        list[float] | None,
        Field(description="half-widths at `sizes.most` and at `sizes.least` rows"),
    ] = None


class SizesJson(BaseModel):
    """How many rows match, of the largest and the smallest group; `receipts` are your answers that
    say so. Without them it is supposed: all rows, and one in five."""

    most: int
    least: int
    receipts: list[int] = []


class QuoteQuestion(BaseModel):
    question: str
    credits: float
    credits_exact: Exact
    repeat: bool
    question_json: dict[str, Any]


class QuoteReply(Reply):
    """Of a statement: `columns` and `questions`; `noise` is empty."""

    credits: float
    credits_exact: Exact
    left_after: float
    left_after_exact: Exact
    affordable: bool
    repeat: bool
    half_width: Nested = None
    standard_error: Nested = None
    confidence: float = 0.95
    note: str = ""
    notes: list[str] = []
    noise: list[LawJson] = []
    columns: list[QuoteColumn] | None = None
    questions: list[QuoteQuestion] | None = None
    sizes: SizesJson | None = None


class PlanLineJson(BaseModel):
    question: str
    credits: float
    credits_exact: Exact
    repeat: bool
    half_width: Nested = None
    note: str = ""
    noise: list[LawJson] = []


class PlanReply(Reply):
    credits: float
    credits_exact: Exact
    left_after: float
    left_after_exact: Exact
    affordable: bool
    confidence: float
    lines: list[PlanLineJson]


class SqlColumn(BaseModel):
    name: str
    is_key: bool = False
    unit: str = ""
    type: Annotated[str, Field(description="integer, number, text, truth, date or datetime")] = (
        "number"
    )
    """An aggregate of the type `date` is in days since 1970, of `datetime` in seconds."""


class SqlCell(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="null")
    """`value` is null where the interval is all that is possible: no reading. `public`: no noise
    was added, which the plan decides; an interval of no width alone does not say so."""

    value: Number = None
    low: Number = None
    high: Number = None
    public: bool = False


class SqlReply(Reply):
    """Rows of keys (as they are) and of aggregates with their intervals."""

    columns: list[SqlColumn]
    rows: list[list[Any]]
    credits: float
    credits_exact: Exact
    receipts: list[int] = []
    notes: list[str] = []
    confidence: float = 0.95


class ReservationReply(Reply):
    id: str
    left: float
    left_exact: Exact


class ExactQuoteReply(Reply):
    guarantee: str
    terms: str
    divisor: int
    left: float
    left_exact: Exact
    left_after: float
    left_after_exact: Exact


class SchemaReply(Reply):
    """The public facts; `Schema.from_json` and `Promise.from_json` read theirs."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, protected_namespaces=())
    table: str
    facts: Annotated[dict[str, Any], Field(alias="schema")]
    meanings: dict[str, Any] = {}
    """Words for columns, values and who is protected; `Schema.with_meanings` reads them."""
    promise: dict[str, str | int | None]
    size: int | None = None
    who: str = ""
    neighbours: str = ""
    remaining: float = 0.0
    remaining_exact: Exact
    durable: bool = True  # what is spent is spent for good; false of a ledger in memory


class StatementReply(Reply):
    """What the table has spent and has left; `mine` is the caller's own share."""

    table: str
    credits: float
    credits_exact: Exact
    spent: float
    spent_exact: Exact
    left: float
    left_exact: Exact
    mine: float
    mine_exact: Exact
    guarantee: str
    questions: int
    answered: int
    ledger: str = ""
    seq: int = 0
    head: str = ""
    public_key: str = ""
    text: str = ""
    analysts: list[dict[str, Any]] | None = None
    overruns: int | None = None  # replies that missed their tick; the owner's alone


class LedgerReply(Reply):
    """A page of events; `next` is the number to go on after, None at the end."""

    entries: list[dict[str, Any]]
    next: int | None = None


class TableLine(BaseModel):
    name: str
    state: Literal["open", "closed"] = "open"
    size: int | None = None
    credits: float = 0.0
    left: float = 0.0
    role: Annotated[str, Field(description="what the token may do there")] = ""


class MonitorLine(BaseModel):
    """`missed_ticks`: replies that left later than their tick, by day (UTC), of days that are over
    and since the server started."""

    name: str
    state: Literal["open", "closed", "out of order"]
    credits: float
    left: float | None = None
    left_exact: Exact | None = None
    missed_ticks: dict[str, int] = {}


class MonitorReply(Reply):
    """What a monitor sees of a server; `sulq` is the version of the program."""

    sulq: str
    tables: list[MonitorLine]


class TablesReply(Reply):
    tables: list[TableLine]


class MeReply(Reply):
    """`role` where the token has one role everywhere; `roles` by table."""

    name: str
    role: str
    roles: dict[str, str] = {}
    tables: list[str] | None = None
