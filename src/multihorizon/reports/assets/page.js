"use strict";
// A click on a column heading sorts the table: numbers in descending order, texts alphabetically. A second click reverses
// the order.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const key = (row) => row.cells[column].dataset.value;
      const rows = [...body.rows];
      const known = rows.map(key).filter((value) => value !== undefined);
      const numeric = known.length > 0 && known.every((value) => value !== "" && !Number.isNaN(Number(value)));
      const before = head.getAttribute("aria-sort");
      const descending = before === "none" ? numeric : before === "ascending";
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
        return descending ? -order : order;
      };
      rows.sort(compare);
      body.append(...rows);
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    });
  });
}
