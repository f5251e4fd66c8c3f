"""Every public learner is documented as numpydoc wants it, and its example runs."""

from __future__ import annotations

import doctest
import warnings

import pytest
from tests.learn.docstrings import SECTIONS, described, sections
from tests.learn.exact_oracle import ExactOracle
from tests.learn.test_reference import ESTIMATORS
from tests.people import frame, publish

from sulq import learn


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_learner_describes_its_parameters_and_its_example_runs(name):
    kind = getattr(learn, name)
    told = sections(kind)
    assert tuple(told) == SECTIONS
    if name != "Learner":  # its parameters are those that all learners share
        assert described(told["Parameters"]) == set(kind().get_params())
    found = doctest.DocTestFinder(recurse=False).find(kind, name)
    runner = doctest.DocTestRunner(verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for test in found:
            test.globs = {"db": ExactOracle(publish(frame(500)))}
            runner.run(test)
    assert runner.tries > 1 and runner.failures == 0


def test_sections_and_names_are_read():
    class Told:
        """One line.

        Parameters
        ----------
        a, b : int
            Two numbers.
        c
            As for others : see there.

        Notes
        -----
        None.
        """

    assert list(sections(Told)) == ["Parameters", "Notes"]
    assert described(sections(Told)["Parameters"]) == {"a", "b", "c"}
