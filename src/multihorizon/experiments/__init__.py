"""The paper's experiments: each its runs, and the tables made of them."""
