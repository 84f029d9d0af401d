const turns = tables.turns, known = tables.sessions;
const column = name => turns.columns.indexOf(name);
const place = name => known.columns.indexOf(name);
const palette = ["#1b7f4d", "#1d4ed8", "#c2410c", "#0e7490", "#a16207", "#be185d", "#4d7c0f", "#475569"];
const capable = ["#7b3fa0", "#a855f7", "#6d28d9"];
const colours = {};
for (const row of turns.rows) {
  const target = row[column("target")];
  if (!target || colours[target]) continue;
  const from = row[column("tier")] === "capable" ? capable : palette;
  const taken = Object.values(colours);
  colours[target] = from.find(one => !taken.includes(one)) || "#9ca3af";
}
const bySession = new Map();
for (const row of turns.rows) {
  if (!row[column("session")]) continue;
  const key = row[column("tenant")] + "\n" + row[column("session")];
  if (!bySession.has(key)) bySession.set(key, []);
  bySession.get(key).push(row);
}
function shape(parent, name, given, title) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  if (title) {
    const said = document.createElementNS("http://www.w3.org/2000/svg", "title");
    said.textContent = title;
    made.append(said);
  }
  parent.append(made);
  return made;
}
function label(parent, x, y, said, given = {}) {
  shape(parent, "text", {x, y, "font-size": 11, fill: "#4b5563", ...given}).textContent = said;
}
const usd = value => value === null ? "unknown" : "$" + (Math.abs(value) >= 1 ? value.toFixed(2) : Number(value.toPrecision(3)));
const many = (n, noun, rest = "") => n + " " + noun + (n === 1 ? "" : "s") + rest;
const tokens = value => value === null ? "not reported" : value.toLocaleString("en");
function about(row) {
  const of = name => row[column(name)];
  return [
    of("turn") + " at " + of("at"),
    of("target") + (of("tier") ? " (" + of("tier") + ")" : "") + ", decided by " + (of("decided_by") || "nobody") + ", " + of("ended"),
    "cached " + tokens(of("cached")) + ", written " + tokens(of("written")) + ", uncached " + tokens(of("uncached")),
    of("cause") && of("lost") ? "lost " + tokens(of("lost")) + " warm tokens: " + of("cause") : "",
    "cost " + usd(of("cost_usd")) + (of("cold_usd") ? ", " + usd(of("cold_usd")) + " for a cold cache" : ""),
    "turnout why " + of("turn"),
  ].filter(Boolean).join("\n");
}
function timeline(key) {
  const rows = bySession.get(key) || [];
  const of = (row, name) => row[column(name)];
  const lanes = [...new Set(rows.map(row => of(row, "agent")))];
  const left = 130, wide = Math.max(7, Math.min(42, 980 / Math.max(rows.length, 1)));
  const strip = 22, tall = 90, low = 60;
  const top = 18 + lanes.length * strip, middle = top + 26, bottom = middle + tall + 22;
  const svg = shape(document.createElement("div"), "svg",
    {width: left + rows.length * wide + 20, height: bottom + low + 26, role: "img", "font-family": "system-ui, sans-serif"});
  svg.style.maxWidth = "none";
  lanes.forEach((lane, index) => label(svg, 0, 18 + index * strip + 15, lane ? lane.slice(0, 18) : "main"));
  const prompt = row => (of(row, "cached") || 0) + (of(row, "written") || 0) + (of(row, "uncached") || 0);
  const most = Math.max(1, ...rows.map(prompt)), dearest = Math.max(1e-12, ...rows.map(row => of(row, "known_usd")));
  label(svg, 0, middle + 10, "prompt, up to");
  label(svg, 0, middle + 24, most.toLocaleString("en") + " tokens");
  label(svg, 0, bottom + 10, "cost, up to");
  label(svg, 0, bottom + 24, usd(dearest));
  rows.forEach((row, index) => {
    const x = left + index * wide, width = Math.max(wide - 1.5, 2);
    const group = shape(svg, "g", {cursor: "pointer"}, about(row));
    group.onclick = () => { byId("find").value = ""; show("turns", {turn: of(row, "turn")}); byId("rows").scrollIntoView(); };
    const y = 18 + lanes.indexOf(of(row, "agent")) * strip;
    shape(group, "rect", {x, y, width, height: strip - 4, fill: colours[of(row, "target")] || "#d1d5db"});
    const centre = x + width / 2;
    if (of(row, "switched")) shape(group, "path", {d: `M${centre - 4} ${y - 1}h8l-4 6z`, fill: "#111827"});
    if (of(row, "failed")) label(group, centre - 4, y + 14, "✕", {fill: "#fff", "font-weight": 700});
    let at = middle + tall;
    for (const [name, fill] of [["cached", "#93c5fd"], ["written", "#f59e0b"], ["uncached", "#dc2626"]]) {
      const height = (of(row, name) || 0) / most * tall;
      at -= height;
      shape(group, "rect", {x, y: at, width, height, fill});
    }
    const paid = of(row, "known_usd") / dearest * low, cold = of(row, "cold_usd") / dearest * low;
    shape(group, "rect", {x, y: bottom + low - paid, width, height: Math.max(paid - cold, 0), fill: "#6b7280"});
    shape(group, "rect", {x, y: bottom + low - cold, width, height: cold, fill: "#dc2626"});
    if (index % Math.ceil(34 / wide) === 0) label(svg, x, bottom + low + 14, String(index + 1), {"font-size": 9});
  });
  const keys = [...new Set(rows.map(row => of(row, "target")).filter(Boolean))].map(name => [name, colours[name]]);
  keys.push(["cached", "#93c5fd"], ["written to the cache", "#f59e0b"], ["uncached", "#dc2626"]);
  const legend = document.createElement("p");
  for (const [name, fill] of keys) {
    const box = document.createElement("span");
    box.className = "key";
    box.style.background = fill;
    legend.append(box, name + "  ");
  }
  byId("line").replaceChildren(svg, legend);
  const one = known.rows.find(row => row[place("tenant")] + "\n" + row[place("session")] === key);
  const figure = name => one[place(name)];
  byId("of").textContent = figure("session") + (figure("tenant") ? " of " + figure("tenant") : "") + ": " + figure("turns")
    + " turns, " + usd(figure("known_usd")) + ", " + many(figure("switches"), "change", " of model") + ", " + many(figure("failures"), "failure") + ", "
    + usd(figure("cold_usd")) + " for cold caches";
  steps(rows);
}
function steps(rows) {
  const shown = ["turn", "at", "agent", "target", "tier", "decided_by", "cached", "written", "uncached", "lost", "cause", "switched",
    "cost_usd", "cold_usd", "judges_usd", "discarded_usd", "failed_calls_usd", "ended"];
  const body = byId("steps");
  body.replaceChildren();
  const head = body.insertRow();
  for (const name of ["", ...shown]) head.append(Object.assign(document.createElement("th"), {textContent: name.replace("_usd", " USD")}));
  rows.forEach((row, index) => {
    const line = body.insertRow();
    line.insertCell().textContent = index + 1;
    for (const name of shown) {
      const value = row[column(name)], cell = line.insertCell();
      if (name === "turn") {
        const link = document.createElement("a");
        link.href = "#rows";
        link.dataset.rows = JSON.stringify(["turns", {turn: value}]);
        link.title = "turnout why " + value;
        link.textContent = value;
        cell.append(link);
      } else cell.textContent = name.endsWith("_usd") ? (value ? usd(value) : value === null ? "unknown" : "") : value === false ? "" : text(value);
    }
  });
}
function choose(key) { byId("pick").value = key; timeline(key); }
function ranked() {
  const by = place(byId("rank").value);
  const rows = [...known.rows].sort((a, b) => a[by] < b[by] ? 1 : a[by] > b[by] ? -1 : 0);
  byId("pick").replaceChildren(...rows.map(row => new Option(
    row[place("session")] + " (" + row[place("turns")] + " turns, " + usd(row[place("known_usd")]) + ")",
    row[place("tenant")] + "\n" + row[place("session")])));
  if (rows.length) choose(byId("pick").value);
}
function seek() {
  const wanted = byId("seek").value.trim();
  if (!wanted) return;
  const turn = turns.rows.find(row => row[column("turn")] === wanted);
  const session = turn || turns.rows.find(row => row[column("session")].includes(wanted) && row[column("session")]);
  if (session && session[column("session")]) choose(session[column("tenant")] + "\n" + session[column("session")]);
}
if (byId("pick")) {
  byId("names").append(...known.rows.slice(0, 500).map(row => new Option(row[place("session")])));
  byId("rank").onchange = ranked;
  byId("pick").onchange = () => timeline(byId("pick").value);
  byId("seek").oninput = seek;
  document.addEventListener("click", event => {
    const link = event.target.closest("[data-session]");
    if (link) choose(link.dataset.session);
  });
  ranked();
}
