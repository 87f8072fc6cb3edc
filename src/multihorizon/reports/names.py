"""Names as reports show them: on one line and of limited length. Two different names are never shown alike."""

from collections import Counter
from collections.abc import Iterable, Sequence

from multihorizon.reports.escaping import replace_controls

LONGEST_LABEL = 200  # characters; figures with longer labels take very long to draw
LONGEST_FILE_PART = 80  # bytes; a file name may contain two such parts


def cut(text: str, most: int) -> str:
    """Returns at most `most` characters of the text."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_names(names: Iterable[str]) -> dict[str, str]:
    """Returns each name as reports show it. Different names that look the same get a number, such as "dqn� (2)"."""
    shown = {name: cut(replace_controls(name), LONGEST_LABEL) for name in names}
    ordered = sorted(shown, key=lambda name: shown[name] != name)  # unchanged names come first and get no number
    return dict(zip(ordered, number_repeats([shown[name] for name in ordered], "{} ({})"), strict=True))


def number_repeats(texts: Sequence[str], pattern: str) -> list[str]:
    """Numbers each text that repeats an earlier one. `pattern` combines the text and its number."""
    taken, counts, found = set(texts), Counter[str](), []
    for text in texts:
        counts[text] += 1
        chosen = text
        while counts[text] > 1 and (chosen := pattern.format(text, counts[text])) in taken:
            counts[text] += 1
        taken.add(chosen)
        found.append(chosen)
    return found


def make_file_part(label: str) -> str:
    """Returns the label as part of a file name."""
    kept = "".join(c if c.isalnum() or c in "-." else "-" for c in label).strip("-").lower()
    return kept.encode()[:LONGEST_FILE_PART].decode(errors="ignore")
