"""Reports of runs: their data, statistics, tables, figures and pages."""
