"""`sulq alert`: armed once, checked in other processes, listed."""

from __future__ import annotations


def test_an_alert_is_armed_checked_and_listed(sulq):
    reply = sulq(
        "alert",
        "arm",
        "count",
        "--where",
        "age >= 18",
        "--above",
        "-90000",
        "--credits",
        "4",
        "--firings",
        "2",
        "--key",
        "mine",
        "--json",
    )
    assert reply.code == 0, reply.err
    armed = reply.json
    assert (armed["credits"], armed["credits_left"], armed["left"]) == (4, 16, 2)
    assert armed["margin"] > 0
    number = str(armed["alert"])
    again = sulq(
        "alert",
        "arm",
        "people",
        "count",
        "--where",
        "age >= 18",
        "--above",
        "-90000",
        "--credits",
        "4",
        "--firings",
        "2",
        "--key",
        "mine",
    )
    assert "0 credits" in again.out and number in again.out
    first = sulq("alert", "check", number, "--json").json
    assert (first["fired"], first["left"]) == (True, 1)
    other = sulq("alert", "check", "people", number, "count", "--where", "age >= 65")
    assert "fires" in other.out and "0 of 2 firings left" in other.out
    spent = sulq("alert", "check", number)
    assert spent.code == 3 and "arm it again" in spent.err
    (line,) = sulq("alert", "list", "--json").json["alerts"]
    assert (line["alert"], line["left"], line["above"]) == (int(number), 0, -90000)
    assert "COUNT(*) WHERE age >= 18" in sulq("alert", "list", "people").out


def test_a_level_far_away_does_not_fire(sulq):
    sulq("alert", "arm", "count", "--above", "1e7", "--where", "smoker")
    (line,) = sulq("alert", "list", "--json").json["alerts"]
    assert sulq("alert", "check", str(line["alert"]), "--json").json["fired"] is False
    assert "below" in sulq("alert", "check", str(line["alert"])).out


def test_what_is_wrong_is_refused_free(sulq):
    for words in (
        ("arm", "count"),
        ("arm", "count", "--above", "much"),
        ("arm", "mean", "age", "--above", "5"),
        ("arm", "histogram", "city", "--above", "5"),
        ("arm", "count", "--above", "5", "--where", "smoker", "--firings", "0"),
        ("check",),
        ("check", "first"),
        ("check", "1", "--where", "smoker"),
    ):
        assert sulq("alert", *words).code == 2, words
    assert sulq("alert", "check", "7").code == 3
    dear = ("count", "--where", "smoker", "--above", "5", "--credits", "21")
    assert sulq("alert", "arm", *dear).code == 4
    assert sulq("ledger", "--json").json["spent"] == 0
