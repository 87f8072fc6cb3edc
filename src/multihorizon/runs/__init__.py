"""Runs on disk and trained policies: the folder of a run, training with checkpoints and metrics, and evaluation.

`folder`, `metrics` and `weights` read a run's files without JAX.
"""
