"""Checks types and shapes during the tests. An int counts as a float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
