"use strict";

// A click on a heading sorts by its column: descending, ascending, original order. Cells without a number come last.
const NEXT = { none: "descending", descending: "ascending", ascending: "none" };

function sortKey(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  const text = cell.textContent.trim();
  return cell.matches("td.none, td:empty") || text === "–" ? null : text;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// Sorted rows are all in the first group; in the original order, each row is in its own group.
function sortTable(table, original, heading) {
  const order = NEXT[heading.getAttribute("aria-sort") || "none"];
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", order);
  table.classList.toggle("sorted", order !== "none");
  const sign = order === "ascending" ? 1 : -1;
  if (order === "none") {
    for (const [body, rows] of original) body.append(...rows);
    return;
  }
  const rows = original
    .flatMap(([, rows]) => rows)
    .filter((row) => !row.classList.contains("group"))
    .map((row) => ({ row, key: sortKey(row, heading.cellIndex) }))
    .sort((a, b) => (a.key === null) - (b.key === null) || (a.key === null ? 0 : sign * compare(a.key, b.key)))
    .map((entry) => entry.row);
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  const original = [...table.tBodies].map((body) => [body, [...body.rows]]);
  for (const heading of table.tHead.rows[0].cells) {
    heading.setAttribute("aria-sort", "none");
    heading.querySelector("button").addEventListener("click", () => sortTable(table, original, heading));
  }
}

const PLOT = {
  responsive: true,
  displaylogo: false,
  modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
};

for (const plot of document.querySelectorAll(".plot")) {
  const { data, layout } = JSON.parse(plot.querySelector("script").textContent);
  Plotly.newPlot(plot, data, layout, PLOT);
}

// A link to a specification opens it.
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
