"""Plan a statement: which questions it asks, what they cost, how precise it will be."""
