"""The paper's experiments: their runs, and the tables made from them."""
