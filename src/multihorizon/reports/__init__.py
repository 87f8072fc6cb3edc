"""Reports of runs: data read from run folders, statistics, tables, figures, and the page made from them."""
