"""docs/reference/learning.md tells of every name, parameter and attribute that users meet."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from sulq import learn
from sulq.learn.estimator import Learner

TOLD = (Path(__file__).parents[2] / "docs" / "reference" / "learning.md").read_text("utf-8")
COMMON = ("credits", "method", "random_state", "on_noise", "progress")
ESTIMATORS = [
    name
    for name in learn.__all__
    if inspect.isclass(getattr(learn, name)) and issubclass(getattr(learn, name), Learner)
]


@pytest.mark.parametrize("name", learn.__all__)
def test_every_name_is_told_of(name):
    assert f"`{name}" in TOLD


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_told_of(name):
    parameters = inspect.signature(getattr(learn, name)).parameters
    assert set(COMMON) <= set(parameters) or name == "Learner"
    missing = [p for p in parameters if f"`{p}`" not in TOLD and f"{p}=" not in TOLD]
    assert missing == []


def test_shared_parameters_have_the_defaults_told():
    for name in ESTIMATORS:
        given = inspect.signature(getattr(learn, name)).parameters
        for parameter, default in (("credits", None), ("method", "auto"), ("on_noise", "raise")):
            assert name == "Learner" or given[parameter].default == default, name
