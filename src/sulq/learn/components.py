"""PCA and SVD: directions of most spread, from one noisy Gram matrix. S4.6, S4.7, S0.8."""
