// Puts drawings in their places and answers pointer, keys, buttons and changes of width.
const figures = JSON.parse(document.getElementById("figures").textContent);
const tip = document.getElementById("tip");
const PAGE = 50;  // rows

function showTip(svg, hit, ring) {
  const box = svg.getBoundingClientRect(), zoom = box.width / svg.viewBox.baseVal.width;
  tip.replaceChildren(...hit.say().map((line) => Object.assign(document.createElement("div"), { textContent: line })));
  tip.hidden = false;
  const size = tip.getBoundingClientRect(), x = box.left + hit.x * zoom, y = box.top + hit.y * zoom;
  tip.style.left = `${Math.max(4, Math.min(x + 14, root.clientWidth - size.width - 4))}px`;
  tip.style.top = `${y - size.height - 12 > 0 ? y - size.height - 12 : y + 16}px`;
  ring.setAttribute("cx", hit.x);
  ring.setAttribute("cy", hit.y);
  ring.setAttribute("r", 7);
}

function makeLively(svg, hits) {
  const ring = shape("circle", { r: 0, class: "ring" });
  svg.append(ring);
  let current = hits.length - 1;
  const hide = () => { tip.hidden = true; ring.setAttribute("r", 0); };
  const go = (k) => { current = k; showTip(svg, hits[k], ring); };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), zoom = box.width / svg.viewBox.baseVal.width;
    const x = (event.clientX - box.left) / zoom, y = (event.clientY - box.top) / zoom;
    let best = -1, least = 40 ** 2;
    hits.forEach((hit, k) => {
      const distance = (hit.x - x) ** 2 + (hit.y - y) ** 2;
      if (distance < least) [best, least] = [k, distance];
    });
    if (best < 0) hide(); else go(best);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && hits.length && go(current));
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const here = hits[current], groups = [...new Set(hits.map((hit) => hit.group))].sort((a, b) => a - b);
    const turn = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (turn === undefined || !here) return;
    event.preventDefault();
    const isAcross = event.key === "ArrowUp" || event.key === "ArrowDown";
    const group = isAcross ? groups[(groups.indexOf(here.group) + turn + groups.length) % groups.length] : here.group;
    const there = hits.map((hit, k) => k).filter((k) => hits[k].group === group);
    if (!isAcross) return go(there[Math.min(there.length - 1, Math.max(0, there.indexOf(current) + turn))]);
    go(there.reduce((a, b) => (Math.abs(hits[b].x - here.x) < Math.abs(hits[a].x - here.x) ? b : a)));
  });
}

function makeLegend(list, entries) {
  list.replaceChildren(...entries.map(({ colour, label, isBar }) => {
    const item = document.createElement("li"), key = shape("svg", { width: 14, height: 14, "aria-hidden": true });
    key.append(...(isBar ? swatch(colour, 1, 1, 12, 12) : [mark(colour, 7, 7, 5)]));
    item.append(key, label);
    return item;
  }));
}

function drawFigure(figure) {
  const { kind, views } = figures[figure.dataset.figure], place = figure.querySelector(".plot");
  const chosen = figure.querySelector(".views input:checked, .views select");
  const isSmall = "small" in figure.dataset;
  const { svg, hits, legend } = draw[kind](views[chosen ? Number(chosen.value) : 0], Math.max(240, place.clientWidth), isSmall);
  svg.setAttribute("aria-label", place.dataset.label);
  place.replaceChildren(svg);
  makeLegend(figure.querySelector(".legend"), legend);
  makeLively(svg, hits);
}

function sortBy(button) {
  const head = button.closest("th"), table = button.closest("table"), column = head.cellIndex;
  const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
  const text = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const order = new Intl.Collator(undefined, { numeric: true }).compare;
  const compare = (a, b) => Number(text(a)) - Number(text(b)) || order(text(a), text(b));
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => turn * compare(a, b)));
  table.parentElement.dispatchEvent(new Event("sorted"));
}

// Long tables are shown page by page; without a script they are there whole.
function makePager(box) {
  const body = box.querySelector("tbody"), bar = document.createElement("div"), status = document.createElement("span");
  const find = Object.assign(document.createElement("input"), { type: "search", placeholder: "Find a row" });
  const [back, on] = [["‹", "Previous rows"], ["›", "Next rows"]].map(([textContent, ariaLabel]) =>
    Object.assign(document.createElement("button"), { type: "button", className: "turn", textContent, ariaLabel }));
  let page = 0;
  const show = (to) => {
    const rows = [...body.rows], wanted = find.value.trim().toLowerCase();
    const found = rows.filter((row) => row.cells[0].textContent.toLowerCase().includes(wanted));
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    page = Math.min(Math.max(to, 0), last);
    const from = page * PAGE, shown = new Set(found.slice(from, from + PAGE));
    for (const row of rows) row.hidden = !shown.has(row);
    status.textContent = shown.size ? `${from + 1} to ${from + shown.size} of ${found.length}` : "none found";
    [back.disabled, on.disabled] = [page === 0, page === last];
  };
  bar.className = "pager";
  find.setAttribute("aria-label", "Find a row by its first column");
  status.setAttribute("role", "status");
  bar.append(find, back, status, on);
  box.before(bar);
  find.addEventListener("input", () => show(0));
  back.addEventListener("click", () => show(page - 1));
  on.addEventListener("click", () => show(page + 1));
  box.addEventListener("sorted", () => show(0));
  show(0);
}

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {  // no right to the clipboard: mark it, so that one keypress copies
    getSelection().selectAllChildren(code);
    button.textContent = "Press Ctrl+C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

function drawAll() {
  for (const figure of document.querySelectorAll("figure[data-figure]")) drawFigure(figure);
  root.dataset.overflow = root.scrollWidth > root.clientWidth ? "yes" : "no";
}

document.addEventListener("change", (event) => {
  const figure = event.target.closest(".views") && event.target.closest("figure");
  if (figure) drawFigure(figure);
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.closest("th")) sortBy(button);
  else if (button?.classList.contains("copy")) copy(button);
});
for (const box of document.querySelectorAll("[data-paged]")) makePager(box);
let width = root.clientWidth;
window.addEventListener("resize", () => {
  if (root.clientWidth === width) return;  // a phone's address bar comes and goes
  width = root.clientWidth;
  drawAll();
});
drawAll();
root.dataset.ready = "yes";
