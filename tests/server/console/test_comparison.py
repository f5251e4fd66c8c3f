"""Two rows, or two answers, compared: free, for who may open them, sure as it says."""

from __future__ import annotations

import pytest
from tests.server.conftest import Served
from tests.server.console.test_stored_answers import asked

from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.server.auth.tokens import Role
from sulq.server.console.comparison import difference
from sulq.sql.evaluate.linear_forms import Estimate, Noisy
from sulq.sql.evaluate.result import combine

LAW = DiscreteGaussian(10**2)
ROUTES = ("compare", "file/csv", "file/xlsx", "file/svg")
BY = "SELECT illness, COUNT(*) AS n FROM people WHERE smoker GROUP BY illness"


def at(number: int, what: str) -> str:
    return f"/console/people/a/{number}/{what}"


def result(text: str) -> str:
    return " ".join(text.split('class="result"')[1].split("</p>")[0].split())


def noisy(name: str, value: float) -> Estimate:
    return Noisy.draw(name, value, LAW, 1)


def test_inside_one_answer_shared_noise_cancels_and_across_two_it_never_helps() -> None:
    first, second = noisy("a", 50.0), noisy("b", 20.0)
    within = difference(first, second, 0.95, apart=False)
    across = difference(first, second, 0.95, apart=True)
    assert within == combine("-", first, second).interval(0.95)
    assert across[0] < within[0] and within[1] < across[1]
    halves = [
        sum((1, -1)[k] * end for k, end in enumerate(one.interval(0.975)))
        for one in (first, second)
    ]
    assert across[1] - across[0] == pytest.approx(-sum(halves))  # the union of two at 97.5 %


def test_two_rows_are_compared_alone_and_with_all_pairs(server: Served) -> None:
    number = asked(server, BY)
    head, left = server.database.ledger.head, server.database.left_for("analyst")
    analyst = server.client("analyst")
    text = analyst.get(at(number, "compare?first=0&second=1")).text
    assert "cannot be told apart" in result(text) or "is higher than" in result(text)
    assert "difference in number of rows" in text and text.count('class="point"') == 1
    other = asked(
        server, "SELECT illness, COUNT(*) AS n FROM people WHERE NOT smoker GROUP BY illness"
    )
    both = analyst.get(at(number, f"compare?first=0&other={other}&second=0")).text
    assert "is higher than" in result(both) and "asked apart" in result(both)
    none = analyst.get(
        at(number, f"compare?other={asked(server, 'SELECT AVG(age) AS y FROM people')}")
    )
    assert "does not have this figure" in result(none.text)
    server_left = server.database.left_for("analyst")
    assert analyst.get(at(number, "compare")).status_code == 200
    assert server.database.left_for("analyst") == server_left
    assert left >= server_left and head != ""


def test_files_are_what_the_page_says(server: Served) -> None:
    number = asked(server, BY)
    analyst = server.client("analyst")
    head = server.database.ledger.head
    replies = {what: analyst.get(at(number, what)) for what in ROUTES[1:]}
    assert {reply.status_code for reply in replies.values()} == {200}
    assert replies["file/xlsx"].content[:2] == b"PK"
    assert replies["file/svg"].text.startswith("<svg") and "receipt #" in replies["file/svg"].text
    assert replies["file/csv"].text.startswith("illness,n,n_low,n_high,credits")
    assert all("attachment" in one.headers["content-disposition"] for one in replies.values())
    assert analyst.get(at(number, "file/svg?figure=7")).status_code == 404
    assert server.database.ledger.head == head  # nothing is written or spent


def test_not_yours_is_not_there(server: Served) -> None:
    """The same bytes for a colleague's answer, one beyond the end, and one to compare it with."""
    number = asked(server, BY)
    rival = server.client("rival")
    own = asked(server, "SELECT COUNT(*) AS n FROM people WHERE age > 70", "rival")
    for what in ROUTES:
        told = [rival.get(at(n, what)) for n in (number, 1, 10**9)]
        assert {reply.status_code for reply in told} == {404}, what
        assert len({reply.content for reply in told}) == 1, what
    hidden = [rival.get(at(own, f"compare?other={n}")) for n in (number, 10**9)]
    assert {reply.status_code for reply in hidden} == {404}
    assert len({reply.content for reply in hidden}) == 1


def test_who_may_compare_and_save(server: Served) -> None:
    number = asked(server, BY)
    for who in (None, *map(str, Role)):
        client = server.client(who)
        codes = {client.get(at(number, what)).status_code for what in ROUTES}
        expected = {
            None: {401},
            "owner": {200},
            "analyst": {200},
            "auditor": {403},
            "monitor": {403},
        }
        assert codes == expected.get(who, codes), who
