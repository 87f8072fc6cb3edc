"""Experiments, those of the paper and others: their runs, and the tables made from them."""
