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
    from sulq.learn.association import AssociationRules
    from sulq.learn.auto import Classifier
    from sulq.learn.cluster.kmeans import KMeans
    from sulq.learn.cluster.mixture import GaussianMixture
    from sulq.learn.decomposition import PCA, SVD, FactorAnalysis
    from sulq.learn.discriminant import LinearDiscriminant
    from sulq.learn.estimator import Learner, NoisyResult
    from sulq.learn.latent import LSI, PLSI
    from sulq.learn.linear.classifiers import LinearSVC, LogisticRegression
    from sulq.learn.linear.perceptron import Perceptron
    from sulq.learn.linear.regression import LinearRegression
    from sulq.learn.link_analysis import LinkAnalysis
    from sulq.learn.naive_bayes import NaiveBayes
    from sulq.learn.statistical_query import Conjunction, DecisionList, SQLearner, stat
    from sulq.learn.tree import DecisionTree

_HOME = {
    "association": ["AssociationRules"],
    "auto": ["Classifier"],
    "cluster.kmeans": ["KMeans"],
    "cluster.mixture": ["GaussianMixture"],
    "decomposition": ["FactorAnalysis", "PCA", "SVD"],
    "discriminant": ["LinearDiscriminant"],
    "estimator": ["Learner", "NoisyResult"],
    "latent": ["LSI", "PLSI"],
    "linear.classifiers": ["LinearSVC", "LogisticRegression"],
    "linear.perceptron": ["Perceptron"],
    "linear.regression": ["LinearRegression"],
    "link_analysis": ["LinkAnalysis"],
    "naive_bayes": ["NaiveBayes"],
    "statistical_query": ["Conjunction", "DecisionList", "SQLearner", "stat"],
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
