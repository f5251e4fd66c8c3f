"""The R package against a real server: it asks what Python asks, and is told the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Far, far
from tests.people import publish

from sulq import (
    Promise,
    cdf,
    col,
    correlation,
    count,
    covariance,
    distribution,
    histogram,
    mean,
    quantiles,
    total,
    variance,
    when,
)
from sulq.wire import question_json

PACKAGE = Path(__file__).parents[2] / "clients" / "r"
NEEDED = ("httr2", "jsonlite", "openssl", "knitr", "markdown", "testthat")


def missing() -> str | None:
    """Return why R cannot be run here; None if it can."""
    if shutil.which("Rscript") is None:
        return "there is no R here (Debian: r-base-core)"
    code = "cat(setdiff(commandArgs(TRUE), rownames(installed.packages())))"
    found = subprocess.run(["Rscript", "-e", code, *NEEDED], capture_output=True, text=True)
    return f"R lacks {found.stdout or found.stderr}" if found.stdout or found.returncode else None


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of R packages with this one installed."""
    if (why := missing()) is not None:
        pytest.skip(why)
    path = tmp_path_factory.mktemp("library")
    subprocess.run(
        ["R", "CMD", "INSTALL", f"--library={path}", "--no-docs", str(PACKAGE)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return path


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("r")
        patch.setenv("SULQ_STATE", str(path / "state"))
        database = publish(promise=Promise(1, "1e-6", queries=500), name="people")
        database.grant("analyst", 200)
        with far(path, people=database) as found:
            yield found


def run(library: Path, there: Far, code: str | Path) -> str:
    """Run R code, or a file of it, with the address and the token in the environment."""
    what = ["-e", code] if isinstance(code, str) else [str(code)]
    ended = subprocess.run(
        ["Rscript", *what],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ
        | {
            "R_LIBS": str(library),
            "SULQ_URL": f"{there.url}/people",
            "SULQ_TOKEN": there.tokens["analyst"],
        },
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


OLD = (col("age") >= 65) & ~col("smoker")
INCOME = col("income").clip(0, 100_000)
QUESTIONS = {
    "count()": count(),
    "count(age, where = income > 0.1)": count("age", where=col("income") > 0.1),
    "count(where = age >= 65 & !smoker)": count(where=OLD),
    "count(where = age >= .(limit) & !smoker)": count(where=(col("age") >= 70) & ~col("smoker")),
    'count(where = blood %in% c("A", "B") | is.na(city))': count(
        where=col("blood").isin(["A", "B"]) | col("city").is_null()
    ),
    "total(clip(income, 0, 1e5) - 2.5 * age)": total(INCOME - 2.5 * col("age")),
    "total(ifelse(between(age, 20, 30), pmin(age, 25), -1))": total(
        when(col("age").between(20, 30)).then(col("age").min(25)).otherwise(-1)
    ),
    'mean("income", where = age < 40)': mean("income", where=col("age") < 40),
    "variance(coalesce(age, 3))": variance(col("age").coalesce(3)),
    "covariance(age, clip(income, 0, 1e5))": covariance("age", INCOME),
    "correlation(age, clip(income, 0, 1e5), where = smoker)": correlation(
        "age", INCOME, where=col("smoker")
    ),
    "histogram(age, edges = c(0, 18, 65, 120))": histogram("age", edges=[0, 18, 65, 120]),
    "histogram(age, blood, edges = list(age = c(0, 50, 120)), other = TRUE)": histogram(
        "age", "blood", edges={"age": [0, 50, 120]}, other=True
    ),
    "cdf(age, edges = c(0, 18, 65, 120))": cdf("age", edges=[0, 18, 65, 120]),
    "quantiles(age, c(0.25, 0.5), where = smoker)": quantiles(
        "age", [0.25, 0.5], where=col("smoker")
    ),
    "distribution(income, by = blood, resolution = 8)": distribution(
        "income", by="blood", resolution=8
    ),
}


def test_a_question_in_r_is_the_question_in_python(library, there):
    """What R has paid for is free in Python, and has the same value and interval."""
    typed = ",\n".join(f"{json.dumps(text)} = sulq_question({text})" for text in QUESTIONS)
    said = run(
        library,
        there,
        f"""
        library(sulq)
        limit <- 70
        people <- sulq_connect(Sys.getenv("SULQ_URL"), credits = 100, purpose = "same")
        questions <- list({typed})
        told <- lapply(questions, function(one) {{
          found <- sulq_ask(people, one)
          list(value = found$value, low = found$low, high = found$high, credits = found$credits)
        }})
        cat(jsonlite::toJSON(told, auto_unbox = TRUE, digits = I(17)), "\\n")
        day <- sulq_question(count(where = day >= as.Date("2020-01-31")))
        cat(jsonlite::toJSON(day$form, auto_unbox = TRUE))
        """,
    )
    first, second = said.splitlines()
    assert json.loads(second) == question_json(count(where=col("day") >= date(2020, 1, 31)))
    told: dict[str, Any] = json.loads(first)
    python = there.remote(who="analyst")
    for text, question in QUESTIONS.items():
        answer = python.ask(question)
        assert answer.credits == 0, text
        for name, ours in zip(("low", "high"), answer.interval(0.95), strict=True):
            assert told[text][name] == pytest.approx(flat(ours), rel=1e-12), text
        assert told[text]["value"] == pytest.approx(flat(answer.value), rel=1e-12), text


def flat(value: Any) -> Any:
    """Return an array as a list of numbers; one number stays one."""
    listed = getattr(value, "ravel", lambda: value)()
    return [float(one) for one in listed] if hasattr(listed, "__len__") else float(listed)


@pytest.mark.slow
def test_the_vignette_runs_line_for_line(library, there, tmp_path):
    script = tmp_path / "analyst.R"
    vignette = PACKAGE / "vignettes" / "analyst.Rmd"
    code = f"knitr::purl({json.dumps(str(vignette))}, {json.dumps(str(script))}, quiet = TRUE)"
    run(library, there, code)
    before = there.databases["people"].left_for("analyst")
    said = run(library, there, script)
    assert "<quote 1 credit, +-" in said and "[low, high] holds the true value at 95 %" in said
    assert "WITHIN 80: met" in said and "<plan of 2 questions, " in said
    assert "sulq_invalid_query: division by something that can be 0" in said
    assert "sulq_invalid_query: no column 'weight'" in said
    assert "sulq_budget_spent: this costs" in said
    assert "[1] TRUE TRUE" in said
    spent = before - there.databases["people"].left_for("analyst")
    assert 0 < spent <= 60


def test_r_spends_nothing_unless_it_is_told_so(library, there):
    before = there.databases["people"].left_for("analyst")
    said = run(
        library,
        there,
        """
        library(sulq)
        why <- function(code) {
          tryCatch(code, sulq_error = function(e) cat(class(e)[[1]], conditionMessage(e), "\\n"))
        }
        free <- sulq_connect(Sys.getenv("SULQ_URL"))
        why(sulq_ask(free, count(where = age > 91)))
        why(sulq_sql(free, "SELECT COUNT(*) FROM people WHERE age > 91"))
        why(sulq_ask(free, sulq_plan(free, count(where = age > 91), count(where = age > 92))))
        cat(sulq_ask(free, histogram(city))$credits, "\\n")
        pool <- function() sulq_connect(Sys.getenv("SULQ_URL"), credits = 3, purpose = "pool")
        told <- sulq_sql(pool(), "SELECT COUNT(*) AS n FROM people WHERE age > 93")
        plan <- sulq_plan(pool(), a = count(where = age > 94), b = count(where = age > 95))
        cat(names(sulq_ask(pool(), plan)), "\\n")
        why(sulq_ask(pool(), count(where = age > 96)))
        cat(sulq_sql(free, "SELECT COUNT(*) AS n FROM people WHERE age > :low",
                     params = list(low = 93))[["n_low"]] >= 0, "\\n")
        print(sulq_sql(free, "SELECT city, COUNT(*) AS n FROM people WHERE smoker GROUP BY city",
                       dummy = TRUE))
        """,
    )
    lines = said.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["sulq_price_changed"] * 3
    assert all("this costs" in line and "purpose" in line for line in lines[:3])
    assert lines[3].strip() == "0" and lines[4].split() == ["a", "b"]
    assert lines[5].startswith("sulq_budget_spent") and "has spent 3 of its 3" in lines[5]
    assert lines[6].strip() == "TRUE" and "made-up rows" in said
    assert before - there.databases["people"].left_for("analyst") == Fraction(3)


@pytest.mark.slow
def test_receipts_verify_in_r_and_changed_ones_do_not(library, there):
    said = run(
        library,
        there,
        """
        library(sulq)
        people <- sulq_connect(Sys.getenv("SULQ_URL"), credits = 1, purpose = "receipt")
        answer <- sulq_ask(people, count(where = age > 97))
        key <- sulq_statement(people)$public_key
        fetched <- sulq_receipt(people, answer$receipt$number)
        forged <- fetched
        forged$body$share[[1]] <- "0"
        cat(sulq_verify(answer, key), sulq_verify(fetched, key), sulq_verify(forged, key),
            sulq_verify(fetched, strrep("0", 64)), "\\n")
        cat(answer$receipt$number %in% sulq_receipts(people)$number, "\\n")
        """,
    )
    assert said.split() == ["TRUE", "TRUE", "FALSE", "FALSE", "TRUE"]


@pytest.mark.slow
def test_r_cmd_check_is_clean(library, tmp_path):
    """It runs the tests of the package too. The PDF of the manual needs LaTeX and is left out."""
    environment = os.environ | {"_R_CHECK_CRAN_INCOMING_": "false"}
    build = ["R", "CMD", "build", str(PACKAGE)]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, env=environment)
    made = next(tmp_path.glob("sulq_*.tar.gz"))
    check = ["R", "CMD", "check", "--no-manual", made.name]
    ended = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0 and "\nStatus: OK" in ended.stdout, ended.stdout
