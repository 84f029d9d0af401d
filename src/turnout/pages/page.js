"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const tables = Object.fromEntries(data.tables.map(table => [table.name, table]));
const byId = id => document.getElementById(id);
const step = 50;
let table = data.tables[0], where = {}, rows = [], limit = step;
function text(value) { return value === null ? "" : String(value); }
function matching() {
  const wanted = Object.entries(where).map(([name, value]) => [table.columns.indexOf(name), value]);
  const found = byId("find").value.trim().toLowerCase();
  return table.rows.filter(row => wanted.every(([at, value]) => value === "> 0" ? row[at] > 0 : row[at] === value)
    && (!found || row.some(value => text(value).toLowerCase().includes(found))));
}
function draw() {
  const shown = byId("table");
  shown.replaceChildren();
  const head = shown.insertRow();
  table.columns.forEach((name, index) => {
    const cell = document.createElement("th");
    const sort = document.createElement("a");
    sort.href = "#rows";
    sort.textContent = name;
    sort.onclick = () => { rows = [...rows].sort((a, b) => order(a[index], b[index])); draw(); };
    cell.append(sort);
    head.append(cell);
  });
  for (const row of rows.slice(0, limit)) {
    const line = shown.insertRow();
    for (const value of row) line.insertCell().textContent = text(value);
  }
  const having = Object.entries(where).map(([name, value]) => name + (value === "> 0" ? " " : " = ") + (value === null ? "none" : text(value))).join(", ");
  byId("shown").textContent = rows.length + " of " + table.rows.length + " rows" + (having ? ", " + having : "") + ". "
    + table.said + " From " + table.source + "; all of them: " + table.digest + ", over " + table.key.join(" ") + ".";
  byId("more").hidden = rows.length <= limit;
}
function order(a, b) {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return Number(b) - Number(a);
}
function show(name, having) {
  table = tables[name];
  where = having;
  byId("which").value = name;
  refresh();
}
function refresh() { rows = matching(); limit = step; draw(); }
function save(name, kind, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], {type: kind}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function csv() {
  const cell = value => /[",\r\n]/.test(text(value)) ? '"' + text(value).replaceAll('"', '""') + '"' : text(value);
  return [table.columns, ...rows].map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
document.addEventListener("click", event => {
  const link = event.target.closest("[data-rows]");
  if (!link) return;
  byId("find").value = "";
  show(...JSON.parse(link.dataset.rows));
});
for (const one of data.tables) byId("which").append(new Option(one.name + " (" + one.rows.length + ")", one.name));
byId("which").onchange = () => show(byId("which").value, {});
byId("find").oninput = refresh;
byId("more").onclick = () => { limit += step; draw(); };
byId("csv").onclick = () => save(table.name + ".csv", "text/csv", csv());
byId("json").onclick = () => save(table.name + ".json", "application/json",
  JSON.stringify(rows.map(row => Object.fromEntries(row.map((value, at) => [table.columns[at], value]))), null, 1));
byId("figures").onclick = () => save("figures.json", "application/json", JSON.stringify(data.figures, null, 1));
for (const one of data.presets) {
  const button = document.createElement("button");
  button.textContent = one.said;
  button.dataset.rows = JSON.stringify([one.table, one.where]);
  byId("presets").append(button);
}
show(table.name, {});
