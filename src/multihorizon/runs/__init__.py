"""Runs on disk and policies in use: the folder of a run, training that is recorded, and what a trained agent does.

`folder`, `metrics` and `weights` read a run's files without JAX.
"""
