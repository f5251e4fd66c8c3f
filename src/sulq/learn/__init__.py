"""Private learning: the papers' algorithms over an Oracle, and nothing else.

Directions:   PCA, SVD, FactorAnalysis
Groups:       KMeans, GaussianMixture
Classes:      Classifier, LogisticRegression, LinearDiscriminant, LinearSVC, Perceptron,
              DecisionTree, NaiveBayes
Numbers:      LinearRegression
Patterns:     AssociationRules, LinkAnalysis
Documents:    LSI, PLSI
Statistical queries: stat, SQLearner, Conjunction, DecisionList

`Estimator(...).quote(oracle, features, label)` is free; `.fit(oracle, features, label)` spends at
most `credits`. Names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sulq.errors import TooNoisy

if TYPE_CHECKING:
    from sulq.learn.bayes import NaiveBayes
    from sulq.learn.choice import Classifier
    from sulq.learn.clusters import KMeans
    from sulq.learn.components import PCA, SVD
    from sulq.learn.discriminant import LinearDiscriminant
    from sulq.learn.estimator import Learner, NoisyResult
    from sulq.learn.factors import FactorAnalysis
    from sulq.learn.latent import LSI, PLSI
    from sulq.learn.linear import LinearRegression
    from sulq.learn.links import LinkAnalysis
    from sulq.learn.logistic import LogisticRegression
    from sulq.learn.mixture import GaussianMixture
    from sulq.learn.perceptron import Perceptron
    from sulq.learn.rules import AssociationRules
    from sulq.learn.statistical import Conjunction, DecisionList, SQLearner, stat
    from sulq.learn.svc import LinearSVC
    from sulq.learn.tree import DecisionTree

_HOME = {
    "bayes": ["NaiveBayes"],
    "choice": ["Classifier"],
    "clusters": ["KMeans"],
    "components": ["PCA", "SVD"],
    "discriminant": ["LinearDiscriminant"],
    "estimator": ["Learner", "NoisyResult"],
    "factors": ["FactorAnalysis"],
    "latent": ["LSI", "PLSI"],
    "linear": ["LinearRegression"],
    "links": ["LinkAnalysis"],
    "logistic": ["LogisticRegression"],
    "mixture": ["GaussianMixture"],
    "perceptron": ["Perceptron"],
    "rules": ["AssociationRules"],
    "statistical": ["Conjunction", "DecisionList", "SQLearner", "stat"],
    "svc": ["LinearSVC"],
    "tree": ["DecisionTree"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LSI",
    "PCA",
    "PLSI",
    "SVD",
    "AssociationRules",
    "Classifier",
    "Conjunction",
    "DecisionList",
    "DecisionTree",
    "FactorAnalysis",
    "GaussianMixture",
    "KMeans",
    "Learner",
    "LinearDiscriminant",
    "LinearRegression",
    "LinearSVC",
    "LinkAnalysis",
    "LogisticRegression",
    "NaiveBayes",
    "NoisyResult",
    "Perceptron",
    "SQLearner",
    "TooNoisy",
    "stat",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'sulq.learn' has no attribute {name!r}")
    found = getattr(import_module(f"sulq.learn.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
