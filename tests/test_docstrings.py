"""Finds missing sections in public docstrings, which ruff does not notice."""

import ast
import dataclasses
import enum
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import multihorizon as mh
from multihorizon.agents.losses import Loss
from multihorizon.envs import Environment
from multihorizon.runs.loggers import Logger
from multihorizon.runs.progress import Watcher

# Public classes need not repeat the documentation of methods that these interfaces declare.
INTERFACES: tuple[type, ...] = (Environment, Logger, Loss, Watcher)
SOURCE = Path(mh.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)
ENTRY = re.compile(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:", re.MULTILINE)


class Public(NamedTuple):
    name: str
    value: Any


def _exported(module: ModuleType) -> Iterator[Public]:
    """Yields the names in a module's `__all__`, or else all public names that the module defines."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    for name in names:
        yield Public(f"{module.__name__.removeprefix('multihorizon.')}.{name}", getattr(module, name))


def _public() -> Iterator[Public]:
    for name in mh.__all__:
        value = getattr(mh, name)
        if isinstance(value, ModuleType):
            yield from _exported(value)
        else:
            yield Public(name, value)


def _documentable() -> dict[str, Any]:
    found: dict[int, Public] = {}
    for public in _public():
        value = public.value
        if inspect.isclass(value) or inspect.isroutine(value):
            found.setdefault(id(value), public)
    return {public.name: public.value for public in found.values()}


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods of a class, but no methods that a base class or an interface declares."""
    inherited = [*cls.__mro__[1:], *(interface for interface in INTERFACES if interface is not cls)]
    for name, value in vars(cls).items():
        if name.startswith("_") or any(name in vars(base) for base in inherited):
            continue
        if isinstance(value, staticmethod | classmethod):
            yield name, value.__func__
        elif inspect.isfunction(value):
            yield name, value


DOCUMENTABLE = _documentable()
CLASSES = {name: value for name, value in DOCUMENTABLE.items() if inspect.isclass(value)}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value for name, value in DOCUMENTABLE.items() if not inspect.isclass(value)
}
METHODS = {f"{name}.{method}": value for name, cls in CLASSES.items() for method, value in _methods(cls)}


def _sections(documented: Any) -> dict[str, str]:
    parts = SECTION.split(inspect.getdoc(documented) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _entries(documented: Any, *sections: str) -> set[str]:
    found = _sections(documented)
    return {name for section in sections for name in ENTRY.findall(found.get(section, ""))}


@pytest.mark.parametrize("name", FUNCTIONS | METHODS)
def test_public_functions_document_every_argument(name: str) -> None:
    function = (FUNCTIONS | METHODS)[name]
    parameters = set(inspect.signature(function).parameters) - {"self", "cls"}

    assert inspect.getdoc(function)
    assert _entries(function, "Args") == parameters


@pytest.mark.parametrize("name", FUNCTIONS | METHODS)
def test_public_functions_describe_what_they_return(name: str) -> None:
    function = (FUNCTIONS | METHODS)[name]
    sections = _sections(function)
    returned = inspect.signature(function).return_annotation

    if returned not in {None, "None", inspect.Signature.empty}:
        assert {"Returns", "Yields"} & set(sections) or re.match(r"(Returns|Yields) ", sections[""])


@pytest.mark.parametrize("name", CLASSES)
def test_public_classes_document_every_field(name: str) -> None:
    cls = CLASSES[name]
    assert cls.__doc__
    if issubclass(cls, enum.Enum):
        needed = set(cls.__members__)
    elif dataclasses.is_dataclass(cls):
        needed = {field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")}
    elif issubclass(cls, tuple):
        needed = set(cls._fields)
    elif "__init__" in vars(cls) and not getattr(cls, "_is_protocol", False):
        needed = set(inspect.signature(cls).parameters)
    else:
        needed = set()

    named = {name for base in cls.__mro__ if base.__doc__ for name in _entries(base, "Args", "Attributes")}
    assert named >= needed


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_docstring_begins_with_the_forbidden_word(path: Path) -> None:
    """The forbidden word is "Of"."""
    nodes = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [doc for node in nodes if (doc := ast.get_docstring(node) or "").startswith("Of ")] == []
