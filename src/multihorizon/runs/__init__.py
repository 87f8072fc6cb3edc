"""Trains, stores and resumes runs, and evaluates their policies.

The modules `folder`, `metrics` and `weights` read the files of a run without JAX.
"""
