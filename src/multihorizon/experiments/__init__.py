"""The experiments of the paper and others: their runs and tables."""
