// SPDX-License-Identifier: Apache-2.0
// Sorts and filters the tables, and draws the rounds of a row when its name is clicked.
"use strict";

for (const table of document.querySelectorAll("table.sorts")) {
  const titles = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  titles.forEach((title, column) => title.querySelector("button").addEventListener("click", () => sort(table, titles, column)));
  table.addEventListener("click", (event) => {
    if (event.target.matches("button.more")) toggle(event.target);
  });
}

// --- Sorting and filtering ---

function sort(table, titles, column) {
  const body = table.tBodies[0];
  body.querySelectorAll("tr.strip").forEach((row) => row.remove());
  body.querySelectorAll("[aria-expanded=true]").forEach((button) => button.setAttribute("aria-expanded", "false"));
  const down = titles[column].getAttribute("aria-sort") === "ascending";
  titles.forEach((title) => title.removeAttribute("aria-sort"));
  titles[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
  rows.sort((a, b) => compare(a.value, b.value, down ? -1 : 1));
  table.classList.add("sorted");
  rows.forEach(({ row }) => { row.classList.remove("first"); body.append(row); });
}

function valueOf(cell) {
  const text = cell.dataset.v ?? cell.textContent;
  return text === "" || isNaN(text) ? text : Number(text);
}

// Empty cells stay at the end in both orders.
function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b));
}

const filter = document.getElementById("filter");
if (filter) filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of document.querySelectorAll("table.sorts > tbody > tr:not(.strip)")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => text.includes(word));
    if (row.nextElementSibling?.matches(".strip")) row.nextElementSibling.hidden = row.hidden;
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = wanted.length ? `${shown} rows` : "";
});

// --- Strips ---

let strips = null;  // parsed when the first one is asked for

function toggle(button) {
  const row = button.closest("tr");
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) return row.nextElementSibling.remove();
  strips ??= JSON.parse(document.getElementById("strips").textContent);
  const cell = row.parentNode.insertRow(row.sectionRowIndex + 1).insertCell();
  cell.parentNode.className = "strip";
  cell.colSpan = row.cells.length;
  const inside = add(cell, "div", "of");
  strips[row.dataset.n].forEach((one) => draw(inside, one));
}

function draw(cell, one) {
  add(cell, "div", "", (one.s ? one.s + ": " : "") + one.name);
  if (one.why) add(cell, "div", "lost", one.why);
  if (one.launches) {
    add(cell, "small", "", `From ${time(one.low)} (light) to ${time(one.high)} (dark); above, the slowest rank's time of each ` +
      `round; below, ${one.slowest ? "the slowest rank" : "a line a rank, rank 0 on top"}.`);
    const launches = add(cell, "div", "launches");
    for (const launch of one.launches) strip(add(launches, "div"), launch);
  } else if (!one.why) {
    add(cell, "small", "", "Simulated: one round, which is the same at every run.");
  }
  add(cell, "pre").append(add(document.createElement("div"), "code", "", one.again));
  add(cell, "small", "", one.from);
}

// Rounds to the right: dots of the slowest rank's times, and under them a coloured line a rank.
function strip(place, launch) {
  const last = launch.last && Math.max(...launch.last) > 0 && launch.last.length > 1
    ? `, rank ${launch.last.indexOf(Math.max(...launch.last))} last most often` : "";
  add(place, "small", "", `launch ${launch.n}${last}`);
  const ranks = launch.ranks.map((coded) => Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0)));
  const rounds = ranks[0].length;
  const step = Math.max(1, Math.min(6, Math.floor(300 / rounds))), line = ranks.length > 16 ? 3 : 8, top = 48;
  const canvas = add(place, "canvas");
  const sharp = devicePixelRatio || 1, width = step * rounds, height = top + 4 + line * ranks.length;
  canvas.width = width * sharp;
  canvas.height = height * sharp;
  canvas.style.cssText = `width: ${width}px; max-width: 100%; height: ${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(sharp, sharp);
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, width, top);
  for (let round = 0; round < rounds; ++round) {
    const slowest = Math.max(...ranks.map((rank) => rank[round]));
    pen.fillStyle = "#24292f";
    pen.fillRect(round * step, top - 3 - (top - 4) * slowest / 255, Math.max(1, step - 1), 2);
    ranks.forEach((rank, number) => {
      pen.fillStyle = `hsl(212 75% ${94 - 62 * rank[round] / 255}%)`;
      pen.fillRect(round * step, top + 4 + line * number, step, line - 1);
    });
  }
}

// Each figure can be saved as a file.
for (const svg of document.querySelectorAll("figure svg, .card svg")) {
  const link = add(svg.parentNode, "a", "save", "save as SVG");
  link.download = "baton.svg";
  link.href = "#";
  link.addEventListener("click", () => {
    link.href = URL.createObjectURL(new Blob([svg.outerHTML], { type: "image/svg+xml" }));
  });
}

function time(seconds) {
  const [scale, unit] = seconds < 1e-3 ? [1e6, "us"] : seconds < 1 ? [1e3, "ms"] : [1, "s"];
  return `${(seconds * scale).toPrecision(3)} ${unit}`;
}

function add(to, tag, name = "", text = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.textContent = text;
  to.append(made);
  return made;
}
