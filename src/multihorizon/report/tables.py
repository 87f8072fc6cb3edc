"""One table, written as CSV, Markdown and HTML."""

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """`text` is for people; `value` is what machines read and tables are sorted by."""

    text: str
    value: float | str | None = None
    bold: bool = False


EMPTY = Cell("–")


@dataclass(frozen=True)
class Table:
    """The first column is a label. `groups` stand over the columns after it: a name and how many it spans."""

    name: str  # of its file
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    groups: Sequence[tuple[str, int]] = field(default=())
    data: "Table | None" = None  # what the CSV holds, where it has other columns

    @property
    def full_columns(self) -> list[str]:
        """Each with its group before it."""
        over = ["", *(f"{name}, " if name else "" for name, span in self.groups for _ in range(span))]
        return [a + b for a, b in zip(over, self.columns, strict=True)] if self.groups else list(self.columns)

    def csv(self) -> str:
        if self.data:
            return self.data.csv()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.full_columns)
        for row in self.rows:
            writer.writerow([_plain(cell) for cell in row])
        return text.getvalue()

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

        rows = [line([f"**{cell.text}**" if cell.bold else cell.text for cell in row]) for row in self.rows]
        ruler = "|".join(["", "---", *("---:" for _ in self.columns[1:]), ""])
        return "\n".join([line(self.full_columns), ruler, *rows]) + "\n"

    def html(self) -> str:
        over = "".join(f'<th colspan="{span}" scope="colgroup">{html.escape(name)}</th>' for name, span in self.groups)
        head = "".join(
            f'<th scope="col" aria-sort="none"><button type="button">{html.escape(column)}</button></th>'
            for column in self.columns
        )
        groups = f'<tr class="groups"><td></td>{over}</tr>' if over else ""
        body = "".join(f"<tr>{''.join(_html(cell, i == 0) for i, cell in enumerate(row))}</tr>" for row in self.rows)
        return (
            f'<div class="scroll" tabindex="0"><table class="sortable" id="table-{self.name}">'
            f"<thead>{groups}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def number(value: float | None, bold: bool = False, places: int | None = None) -> Cell:
    """With about four figures that count, or so many places."""
    if value is None:
        return EMPTY
    if places is None:
        places = 0 if abs(value) >= 10_000 else 1 if abs(value) >= 100 else 2
    return Cell(f"{value:,.{places}f}".replace("-", "−"), value, bold)


def _plain(cell: Cell) -> str:
    if isinstance(cell.value, float):
        return f"{cell.value:.6g}"
    return str(cell.value) if cell.value is not None else "" if cell is EMPTY else cell.text


def _html(cell: Cell, is_label: bool) -> str:
    key = "" if cell.value is None else f' data-value="{html.escape(str(cell.value))}"'
    text = html.escape(cell.text)
    if is_label:
        return f'<th scope="row"{key}><span>{text}</span></th>'
    return f"<td{key}>{f'<b>{text}</b>' if cell.bold else text}</td>"
