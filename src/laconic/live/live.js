// Follows runs: takes in server-sent events and shows them with what the report's script draws. Opened by its URL's token.
{
const MOST_DRAWN = 8;  // runs in the plot unless somebody chooses more; as many as there are colours
const MOST_POINTS = 600;  // of a line; more than the screen has places for
const MOST_ROWS = 1000;  // of a table
const RECENT_SECONDS = 86400;  // after which a run that stopped or failed has ended
const token = new URLSearchParams(location.search).get("token") ?? "";
const at = (id) => document.getElementById(id);
const runs = new Map(), servers = new Map(), chosen = new Map();  // by name, by folder; name -> whether it is drawn
let columns = {}, ahead = 0, nColours = 0, nVersions = 0;  // ahead: seconds by which the server's clock differs from ours
let opened = null, isPicked = false;  // name of the run whose clients are shown; whether somebody wanted it
const now = () => Date.now() / 1000 + ahead;

// ---------------------------------------------------------------- words
const words = {
  running: "running", waiting: "waits for its server", stopped: "stopped", failed: "failed", finished: "finished",
  unreadable: "cannot be read", sent: "sent something", received: "only received", idle: "nothing to or from it", refused: "its reply was refused",
};
const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(1));

function span(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(minutes / 1440)} days`;
}

function clock(seconds) {
  const day = new Date(seconds * 1000), isToday = new Date(now() * 1000).toDateString() === day.toDateString();
  const time = day.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return isToday ? time : `${day.toLocaleDateString()} ${time}`;
}

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const show = (element, isShown) => { if (element.hidden === isShown) element.hidden = !isShown; };

// ---------------------------------------------------------------- what comes
function takeIn(news) {
  const run = runs.get(news.name) ?? { rows: [], sums: [], colour: -1, version: 0 };
  const { rows, n_kept: nKept, ...facts } = news;
  Object.assign(run, facts);
  if (rows.length || nKept < run.rows.length) run.version = ++nVersions;  // never one that was drawn before
  run.rows.length = run.sums.length = nKept;  // a resumed run goes back to its checkpoint, and so does the page
  for (const row of rows) {
    const [up, down, peer] = run.sums.at(-1) ?? [0, 0, 0];
    run.rows.push(row);
    run.sums.push([up + row[columns.up], down + row[columns.down], peer + row[columns.peer]]);
  }
  runs.set(news.name, run);
}

function hear(news) {
  ahead = news.now - Date.now() / 1000;
  if (news.columns) {
    columns = Object.fromEntries(news.columns.map((name, k) => [name, k]));
    runs.clear();
    servers.clear();
    nColours = 0;
  }
  news.runs.forEach(takeIn);
  for (const name of news.gone ?? []) runs.delete(name);
  for (const server of news.servers) servers.set(server.folder, server);
  render();
}

function connect() {
  const source = new EventSource(`events?token=${encodeURIComponent(token)}`);
  const link = (state, text) => { root.dataset.link = state; put(at("link"), text); };
  const listen = (event) => {
    hear(JSON.parse(event.data));
    const n = [...runs.values()].filter((run) => run.state === "running").length;
    link("up", n ? `Following: ${n} of ${runs.size} ${runs.size === 1 ? "run" : "runs"} under way` : `Following; no run is under way`);
    root.dataset.heard = Number(root.dataset.heard ?? 0) + 1;
  };
  source.addEventListener("all", listen);
  source.addEventListener("news", listen);
  source.onerror = () => {
    const isRefused = source.readyState === EventSource.CLOSED;  // with a token of its own, so it was started anew
    link("down", isRefused ? "laconic live was started anew; open the URL that it printed." : "laconic live does not answer; what stands here is as it was. Trying again…");
  };
}

// ---------------------------------------------------------------- runs
const last = (run, name) => run.rows.at(-1)?.[columns[name]];
const lastKnown = (run, name) => run.rows.findLast((row) => row[columns[name]] !== null)?.[columns[name]];
const total = (run) => (run.sums.at(-1) ?? [0]).reduce((a, b) => a + b, 0);
const isNow = (run) => run.state === "running" || run.state === "waiting" || (run.state !== "finished" && now() - run.beat_at < RECENT_SECONDS);
const byStart = () => [...runs.values()].sort((a, b) => ((a.started ?? "") < (b.started ?? "") ? 1 : -1));
const title = (run) => (run.method ? `${run.method} on ${run.data} · seed ${run.seed}` : run.name);

// By method and seed where that tells them apart.
function nameAll(some) {
  const names = some.map((run) => `${run.method} · seed ${run.seed}`);
  return new Map(some.map((run, k) => [run, names.indexOf(names[k]) === names.lastIndexOf(names[k]) ? names[k] : run.name]));
}

function listDrawn() {
  const all = byStart(), first = [...all.filter((run) => run.state === "running"), ...all.filter((run) => run.state !== "running")];
  const byDefault = new Set(first.slice(0, MOST_DRAWN));
  return all.filter((run) => run.rows.length && (chosen.get(run.name) ?? byDefault.has(run))).reverse();
}

function describeProgress(run) {
  if (!run.rounds) return "";
  const reached = Math.max(0, last(run, "round") ?? 0), of = `of ${run.rounds}`;
  if (!run.progress) return `round ${reached} ${of}`;
  const [round, step, done, asked] = run.progress;
  return `${round ? `round ${round} ${of}` : "set-up"} · ${step}: ${done} of ${asked} ${asked === 1 ? "client" : "clients"}`;
}

function describeBudget(run) {
  const limit = last(run, "budget"), spent = last(run, "busiest");
  return limit === null || limit === undefined ? "no budget" : `${formatBytes(limit - spent)} of ${formatBytes(limit)}`;
}

function describeEnd(run) {
  if (run.state !== "running") return "–";
  if (run.ends_at === null) return "not yet known";
  const left = run.ends_at - now();
  return left < 1 ? "any moment" : `${clock(run.ends_at)}, in ${span(left)}`;
}

const facts = {
  "p10": (run) => `${percent(lastKnown(run, "p10"))} %`,
  "Sent so far": (run) => formatBytes(total(run)),
  "Budget left": describeBudget,
  "Last round took": (run) => (run.rows.length ? `${plain(last(run, "seconds"))} s` : "–"),
  "End foreseen": describeEnd,
  "Last sign of life": (run) => `${span(now() - run.beat_at)} ago`,
};

function makeDrawn(run) {
  const box = make("input", { type: "checkbox", "aria-label": `Draw ${run.name}` });
  box.addEventListener("change", () => { chosen.set(run.name, box.checked); render(); });
  return make("label", { class: "drawn" }, box, "draw");
}

function makeOpener(run) {
  const button = make("button", { type: "button", class: "open" });
  button.addEventListener("click", () => { [opened, isPicked] = [run.name, true]; render(); });
  return button;
}

function makeCard(run) {
  const bar = make("progress", { "aria-label": `Rounds of ${run.name}` });
  const list = make("dl", {}, ...Object.keys(facts).map((name) => make("div", {}, make("dt", {}, name), make("dd"))));
  const top = make("div", { class: "top" }, make("h3", {}, makeOpener(run)), make("span", { class: "state" }));
  const big = make("p", { class: "big" }, make("span"), make("small", {}, " %"));
  return make("article", { "data-name": run.name }, top, make("p", { class: "note" }), big, bar, make("p", { class: "note step" }), list, makeDrawn(run));
}

function fillCard(card, run) {
  card.querySelector("progress").max = run.rounds || 1;
  card.querySelector("progress").value = Math.max(0, last(run, "round") ?? 0);
  put(card.querySelector(".big span"), percent(lastKnown(run, "accuracy")));
  put(card.querySelector(".step"), describeProgress(run));
  const values = card.querySelectorAll("dd");
  Object.values(facts).forEach((say, k) => put(values[k], say(run)));
}

function makeItem(run) {
  return make("li", { "data-name": run.name }, make("div", { class: "top" }, makeOpener(run)), make("p", { class: "note" }), makeDrawn(run));
}

// Keeps the elements of runs that are still there, so that whoever is on one of them stays on it.
function fillList(place, some, makeOne, fillOne, drawn) {
  const known = new Map([...place.children].map((element) => [element.dataset.name, element]));
  some.forEach((run, k) => {
    const element = known.get(run.name) ?? makeOne(run), badge = element.querySelector(".state");
    known.delete(run.name);
    if (place.children[k] !== element) place.insertBefore(element, place.children[k] ?? null);
    element.className = `${element.tagName === "ARTICLE" ? "card " : ""}c${run.colour % N_COLOURS}`;
    element.toggleAttribute("data-open", run.name === opened);
    const opener = element.querySelector(".open");
    put(opener, title(run));
    opener.setAttribute("aria-pressed", run.name === opened);
    if (badge) { put(badge, words[run.state]); badge.dataset.state = run.state; }
    element.querySelector(".drawn input").checked = drawn.has(run);
    put(element.querySelector(".note"), `${run.n_clients ?? "?"} clients · ${run.name}`);
    fillOne(element, run);
  });
  for (const element of known.values()) element.remove();
}

function fillItem(item, run) {
  const what = run.rows.length ? `${percent(lastKnown(run, "accuracy"))} % · ${formatBytes(total(run))} · ` : "";
  put(item.querySelector(".note"), `${what}${words[run.state]} ${run.beat_at ? clock(run.beat_at) : ""} · ${run.name}`);
}

// ---------------------------------------------------------------- drawing
function thin(points) {
  const step = Math.ceil(points.length / MOST_POINTS);
  return points.filter((_, k) => k % step === 0 || k === points.length - 1);
}

function viewAccuracy(drawn) {
  const labels = nameAll(drawn), sums = [null, ([u, d, p]) => u + d + p, ([u, , p]) => u + p, ([, d, p]) => d + p];
  const names = ["", "both ways", "up", "down"], y = { label: "accuracy, mean of clients", unit: "percent" };
  return sums.map((sum, k) => ({
    x: sum ? { label: `bytes so far, all clients, ${names[k]}`, unit: "bytes", log: true } : { label: "round", unit: "count" },
    y,
    series: drawn.map((run) => {
      const points = run.rows.flatMap((row, j) => {
        const share = row[columns.accuracy];
        return share === null ? [] : [[row[columns.round], sum ? sum(run.sums[j]) : row[columns.round], share, share, share]];
      });
      return { label: labels.get(run), colour: run.colour, points: thin(points) };
    }),
  }));
}

// A square for each client, by what it did: {tiles: [[client, name, did, ...]]} as /clients has them.
const shades = { sent: 0, received: 5, idle: -1, refused: 1 };
draw.tiles = (view, width) => {
  const n = view.tiles.length;
  if (!n) return drawNothing(width);
  const size = Math.min(30, Math.max(5, Math.sqrt((width * 180) / n))), gap = size > 9 ? 2 : 1;
  const across = Math.max(1, Math.floor(width / size)), svg = canvas(width, Math.ceil(n / across) * size + 2), hits = [], paths = {};
  view.tiles.forEach(([client, name, did, accuracy, nRight, nTest, up, down], k) => {
    const x = (k % across) * size, y = Math.floor(k / across) * size, side = size - gap;
    (paths[did] ??= []).push(`M${x.toFixed(1)},${y.toFixed(1)}h${side.toFixed(1)}v${side.toFixed(1)}h${(-side).toFixed(1)}z`);
    const tested = accuracy === null ? [] : [`${percent(accuracy)} %, ${nRight} of ${nTest} right`];
    hits.push({ x: x + side / 2, y: y + side / 2, group: Math.floor(k / across), say: () => [name ? `${name} (client ${client})` : `client ${client}`, words[did], ...tested, `sent ${formatBytes(up)}, received ${formatBytes(down)}`] });
  });
  for (const [did, path] of Object.entries(paths)) svg.append(shape("path", { d: path.join(""), fill: colourOf(shades[did]), class: `tile ${did}` }));
  const legend = Object.keys(shades).filter((did) => paths[did]).map((did) => ({ colour: shades[did], label: `${view.tiles.filter((tile) => tile[2] === did).length} ${words[did]}` }));
  return { svg, hits, legend };
};

let pointer = { clientX: -1, clientY: -1 };
document.addEventListener("pointermove", (event) => { if (event.isTrusted) pointer = event; }, { passive: true });

// Only what changed, which its key tells. Whoever points at a plot or steps through it by keys is not disturbed: the tip
// follows, or the drawing waits.
const keys = {};
function redraw(name, kind, key, makeViews) {
  if (keys[name] === key) return;
  keys[name] = key;
  figures[name] = { kind, views: makeViews() };
  const figure = document.querySelector(`[data-figure="${name}"]`), svg = figure.querySelector(".plot svg");
  if (svg && svg === document.activeElement) {
    svg.onblur = () => drawFigure(figure);
    return;
  }
  drawFigure(figure);
  const { clientX, clientY } = pointer, fresh = figure.querySelector(".plot svg");
  if (fresh.contains(document.elementFromPoint(clientX, clientY))) fresh.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY }));
}

// ---------------------------------------------------------------- the run that is opened
let told = null, nTold = 0, isAsking = false, asked = "";  // told: what /clients said of it last

async function askClients(run) {
  const wanted = `${run.name} ${run.version} ${run.state}`;
  if (isAsking || wanted === asked || document.hidden) return;
  [isAsking, asked] = [true, wanted];
  try {
    const answer = await fetch(`clients?token=${encodeURIComponent(token)}&run=${encodeURIComponent(run.name)}`);
    told = await answer.json();
    nTold += 1;
  } catch {  // the next event asks again
    [isAsking, asked] = [false, ""];
    return;
  }
  isAsking = false;
  render();
}

const WORDY = new Set(["Name", "In the last round", "Node", "Status"]);

// cells: what stands under each heading of a row; key: as long as it is the same, so is the table.
function table(place, key, cells, rows) {
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const dress = (name) => (WORDY.has(name) ? { class: "w" } : {}), headings = Object.keys(cells);
  const head = make("tr", {}, ...headings.map((name) => make("th", { scope: "col", ...dress(name) }, name)));
  const makeRow = (row) => make("tr", {}, ...headings.map((name) => make("td", dress(name), cells[name](row))));
  place.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.slice(0, MOST_ROWS).map(makeRow))));
  if (rows.length > MOST_ROWS) place.append(make("p", { class: "note" }, `The first ${MOST_ROWS} of ${rows.length}.`));
}

const clientCells = {
  Client: ([client]) => String(client),
  Name: ([, name]) => name,
  "In the last round": ([, , did]) => words[did],
  "Accuracy %": ([, , , share]) => percent(share),
  "Tested on": ([, , , , , nTest]) => String(nTest),
  Sent: (client) => formatBytes(client[6]),
  Received: (client) => formatBytes(client[7]),
};
const nodeCells = {
  Node: ([, node]) => node,
  Status: ([, , status, , , isRefused]) => (isRefused ? `${status}, refused` : status),
  "Sent since its server started": ([, , , up]) => formatBytes(up),
  Received: ([, , , , down]) => formatBytes(down),
};
const roundCells = {
  Round: ({ row }) => String(row[columns.round]),
  "Accuracy %": ({ row }) => percent(row[columns.accuracy]),
  "p10 %": ({ row }) => percent(row[columns.p10]),
  Up: ({ row }) => formatBytes(row[columns.up]),
  Down: ({ row }) => formatBytes(row[columns.down]),
  "So far": ({ sum }) => formatBytes(sum),
  Replied: ({ row }) => String(row[columns.replied]),
  Seconds: ({ row }) => plain(row[columns.seconds]),
};

function fillClients(run) {
  const mine = told?.name === run.name && !told.error ? told : { clients: [], events: [], round: -1 };
  const counts = ["sampled", "replied", "lost", "refused"].map((name) => `${last(run, name) ?? "?"} ${name}`);
  const isVoid = last(run, "is_void") ? " The round was void: too few replied, or one spoiled it." : "";
  put(at("clients-note"), run.rows.length ? `Round ${last(run, "round")}: ${counts.join(", ")} of ${run.n_clients}.${isVoid}` : "No round has ended yet.");
  const key = `${run.name} ${mine.round} ${nTold}`, axis = { label: "accuracy", unit: "percent" };
  redraw("clients", "tiles", key, () => [{ tiles: mine.clients }]);
  const dots = mine.clients.filter((client) => client[3] !== null).map(([client, , , accuracy, nRight, nTest]) => [client, accuracy, nRight, nTest]);
  redraw("spread", "strip", key, () => [{ x: axis, rows: dots.length ? [{ label: `after round ${mine.tested}`, colour: run.colour, dots }] : [] }]);
  if (at("clients-table").open) table(at("clients-table").lastElementChild, key, clientCells, mine.clients);
  const nMore = mine.n_more_events ?? 0;
  show(at("events-note"), nMore > 0);
  put(at("events-note"), `${nMore} more replies were refused in round ${mine.round}; they stand in events.log.`);
  const list = at("events").querySelector("ol"), lines = mine.events.map(([when, what]) => `${when} ${what}`).join("\n");
  if (list.dataset.lines !== lines) {
    list.dataset.lines = lines;
    list.replaceChildren(...mine.events.map(([when, what]) => make("li", {}, make("time", { datetime: when }, clock(Date.parse(when) / 1000)), what)));
  }
}

function fillNodes(server, refused) {
  show(at("nodes"), Boolean(server));
  if (!server) return;
  const nodes = (server.nodes ?? []).map((node) => [...node, refused.has(node[0])]);
  const counts = ["online", "asleep", "offline", "never seen"].map((state) => [nodes.filter((node) => node[2] === state).length, state]).filter(([n]) => n);
  const reach = server.has_broker === false ? "The server runs, but does not reach its broker." : "The server runs.";
  const nRefused = nodes.filter((node) => node[5]).length, parts = counts.map(([n, name]) => `${n} ${name}`);
  if (nRefused) parts.push(`replies of ${nRefused} refused in the last round`);
  put(at("nodes-note"), `${server.is_running ? reach : "The server does not run; this is what it knew last."} ${parts.join(", ")} ${server.words ?? ""}`);
  table(at("nodes").lastElementChild, JSON.stringify(nodes), nodeCells, nodes);
}

function fillOne() {
  const run = runs.get(opened), server = run ? servers.get(run.server) : [...servers.values()][0];
  show(at("one"), Boolean(run || server));
  for (const id of ["clients-note", "clients-table", "rounds-table", "events"]) show(at(id), Boolean(run));
  for (const name of ["clients", "spread"]) show(document.querySelector(`[data-figure=${name}]`), Boolean(run));
  put(at("one-title"), run ? title(run) : "Deployment");
  const tested = run?.tested === "validation" ? ", tested on validation examples" : "";
  put(at("one-lead"), run ? `${words[run.state]} · ${describeProgress(run)}${tested} · ${run.folder}` : `${server?.folder ?? ""}; no run was begun yet`);
  const trouble = told?.name === opened && told.error ? told.error : run?.words;
  show(at("one-words"), Boolean(trouble));
  put(at("one-words"), trouble ?? "");
  show(at("one-command"), Boolean(run && !run.server && (run.state === "stopped" || run.state === "failed")));
  put(at("one-command").firstElementChild, run?.command ?? "");
  if (run) {
    fillClients(run);
    askClients(run);
  }
  if (run && at("rounds-table").open) {
    const rows = run.rows.map((row, k) => ({ row, sum: run.sums[k].reduce((a, b) => a + b, 0) }));
    table(at("rounds-table").lastElementChild, `${run.name} ${run.version}`, roundCells, rows.reverse());
  }
  fillNodes(server, new Set((told?.name === opened ? told.clients ?? [] : []).filter((client) => client[2] === "refused").map((client) => client[0])));
}

// ---------------------------------------------------------------- all of it
function render() {
  const all = byStart();
  for (const run of [...all].reverse()) if (run.colour < 0) run.colour = nColours++;
  const running = all.find((run) => run.state === "running");
  isPicked &&= runs.has(opened);
  if (!isPicked) opened = (running ?? runs.get(opened) ?? all[0])?.name ?? null;
  const drawn = listDrawn(), some = new Set(drawn), ended = all.filter((run) => !isNow(run));
  fillList(at("cards"), [...all.filter(isNow)].sort((a, b) => (b.state === "running") - (a.state === "running")), makeCard, fillCard, some);
  fillList(at("ended-list"), ended, makeItem, fillItem, some);
  show(at("none"), ended.length === all.length);
  show(at("none-ended"), ended.length === 0);
  redraw("accuracy", "lines", drawn.map((run) => `${run.name} ${run.version}`).join(), () => viewAccuracy(drawn));
  fillOne();
  const run = runs.get(opened);
  document.title = run?.rounds ? `${percent(lastKnown(run, "accuracy"))} % · ${Math.max(0, last(run, "round") ?? 0)}/${run.rounds} · ${run.method}` : "Laconic live";
}

for (const id of ["clients-table", "rounds-table"]) at(id).addEventListener("toggle", render);
document.addEventListener("visibilitychange", () => { if (!document.hidden) render(); });
setInterval(() => { if (!document.hidden && runs.size) for (const card of at("cards").children) fillCard(card, runs.get(card.dataset.name)); }, 1000);
connect();
}
