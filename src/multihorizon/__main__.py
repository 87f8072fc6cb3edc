"""Runs the command line: `python -m multihorizon`."""

from multihorizon.cli import main

raise SystemExit(main())
