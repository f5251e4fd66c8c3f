"""Linear models: regression, classifiers, the perceptron."""
