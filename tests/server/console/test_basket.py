"""A basket: one price for several statements, all asked or none, each kept afterwards."""

from __future__ import annotations

from fractions import Fraction

from tests.server.conftest import Served, new_key

from sulq.server.auth.tokens import Role

PATH = "/console/people/basket"
BY = "SELECT illness, COUNT(*) AS n FROM people WHERE smoker GROUP BY illness"
MEAN = "SELECT illness, AVG(age) AS years FROM people WHERE smoker GROUP BY illness"
BAD = "SELECT AVG(nothing) FROM people WHERE illness = '<script>alert(1)</script>'"


def most(text: str) -> str:
    return text.split('data-most="')[1].split('"')[0]


def test_a_basket_is_priced_once_asked_together_and_kept(server: Served) -> None:
    client, head = server.client("analyst"), server.database.ledger.head
    priced = client.post(PATH, json={"sql": [BY, MEAN, BY]}).text
    alone = sum(
        (server.database.as_analyst("analyst").quote_sql(sql).credits for sql in (BY, MEAN)),
        Fraction(0),
    )
    assert Fraction(most(priced)) <= alone and server.database.ledger.head == head
    assert priced.count("data-out=") == 2  # the same one twice is one
    left, key = server.database.left_for("analyst"), new_key()
    body = {"sql": [BY, MEAN], "max_credits": most(priced)}
    reply = client.post(f"{PATH}/ask", json=body, headers={"Idempotency-Key": key})
    assert reply.status_code == 200, reply.text
    paid = left - server.database.left_for("analyst")
    assert paid == Fraction(most(priced))
    again = client.post(f"{PATH}/ask", json=body, headers={"Idempotency-Key": key})
    assert again.text == reply.text and left - server.database.left_for("analyst") == paid
    links = [part.split('"')[0] for part in reply.text.split('href="')[1:]]
    assert len(links) == 2
    for link, title in zip(links, ("Count, smoker", "Average age, smoker"), strict=True):
        page = client.get(link.replace("/t/", "/console/"))
        assert page.status_code == 200 and title in page.text and 'id="result"' in page.text
    assert 'data-most="0"' in client.post(PATH, json={"sql": [MEAN, BY]}).text  # now free


def test_what_cannot_be_asked_is_said_and_nothing_is_charged(server: Served) -> None:
    client, head = server.client("analyst"), server.database.ledger.head
    text = client.post(PATH, json={"sql": [BY, BAD, f"{BY} WITHIN 5"]}).text
    assert "by itself" in text and "no column" in text.lower() and "disabled" in text
    assert "<script>" not in text and "&lt;script&gt;" in text
    for body, code in (
        ({"sql": [BY, BAD], "max_credits": "40"}, 422),
        ({"sql": [BY], "max_credits": "1/100"}, 409),
        ({"sql": [], "max_credits": "1"}, 422),
        ({"sql": [BY] * 13, "max_credits": "1"}, 422),
    ):
        reply = client.post(f"{PATH}/ask", json=body, headers={"Idempotency-Key": new_key()})
        assert reply.status_code == code, (body, reply.text)
    assert server.database.ledger.head == head


def test_who_may_fill_a_basket(server: Served) -> None:
    for who in (None, *map(str, Role)):
        client = server.client(who)
        codes = {
            client.post(PATH, json={"sql": [BY]}).status_code,
            client.post(
                f"{PATH}/ask",
                json={"sql": [BY], "max_credits": "0"},
                headers={"Idempotency-Key": new_key()},
            ).status_code,
        }
        expected = {None: {401}, "owner": {200, 409}, "analyst": {200, 409}}
        assert codes == expected.get(who, {403}), who
