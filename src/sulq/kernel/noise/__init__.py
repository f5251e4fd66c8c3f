"""What is added: the laws (values, no randomness) and the one place that draws from them."""
