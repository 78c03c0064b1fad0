// Polls the API once a second and draws the page.

const charts = {
  nonzero: new Chart($("c-nonzero"), { label: "Non-zero weights", from0: true, log: true }),
  regret: new Chart($("c-regret"), { label: "Regret" }),
  mixture: new Chart($("c-mixture"), { label: "Mixture shares", from0: true }),
  rate: new Chart($("c-rate"), { label: "Events per second", from0: true }),
  lag: new Chart($("c-lag"), { label: "Lag", from0: true }),
};
const losses = new Map(); // one chart for each kind of loss: their scales differ
let life = {}, stride = 0, recent = [], now = null, recentSpan = false, recentLoss = false, lost = 0;
const hidden = new Set();

async function ask(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(8000) });
  if (!answer.ok) throw new Error(answer.status === 401 ? "token required" : `${path}: ${answer.status}`);
  return answer.json();
}

async function series() {
  const past = life.events || [], last = recent.length ? recent[recent.length - 1].time : 0;
  const found = await ask(`api/series?after=${past.length ? past[past.length - 1] : -1}&stride=${stride}&recent=${Math.floor(last)}`);
  if (found.whole || !past.length) {
    life = found.life;
  } else {
    const before = past.length, more = found.life.events.length;
    for (const [name, values] of Object.entries(found.life)) {
      life[name] = (life[name] || new Array(before).fill(null)).concat(values);
    }
    for (const name of Object.keys(life)) if (life[name].length < before + more) life[name] = life[name].concat(new Array(more).fill(null));
  }
  stride = found.stride;
  recent = recent.concat(found.recent.filter((point) => point.time > last)).slice(-300);
}

// Losses of one kind share an axis; before there are learners, there is one empty axis.
function drawLosses(xs, learners, over) {
  const kinds = [...new Set(now.learners.map((one) => one.loss_name))];
  const host = $("c-loss");
  host.classList.toggle("several", kinds.length > 1);
  keyed(host, kinds, (kind) => kind, (kind) => {
    const chart = element("div", { class: "chart", id: `c-loss-${losses.size}` });
    const made = element("div", {}, element("h3", {}, kind), chart);
    losses.set(kind, new Chart(chart, { label: `Progressive loss, ${kind}`, settles: true, log: true }));
    return made;
  }, () => {});
  for (const kind of kinds) losses.get(kind).show(xs, learners.filter((one) => one.kind === kind), over, "The curve begins with the first labeled event.");
}

const objective = (one) => `${one.loss_name} + ${one.comparator}`;
const recentColumn = (name) => recent.map((point) => point[name] ?? null);

function draw() {
  const xs = recentSpan ? recent.map((point) => point.time) : life.events || [];
  const over = recentSpan ? "time" : "events";
  const column = (name) => (recentSpan ? recentColumn(name) : life[name]);
  const of = (kind, more) => now.learners.map((one, index) => ({
    name: one.name, index, kind: one.loss_name, ...(more ? more(one.name) : { values: column(`${kind}/${one.name}`) }),
  })).filter((one) => !hidden.has(one.name));
  drawLosses(xs, of(recentLoss ? "recent" : "loss"), over);
  charts.nonzero.show(xs, of("nonzero"), over, "The curve begins with the first count of weights.");
  // regrets are comparable only against the same comparator
  const against = [...new Set(now.learners.filter((one) => one.comparator).map(objective))];
  $("regret-choice").hidden = against.length < 2;
  choices($("regret-of"), against);
  const alike = now.learners.filter((one) => !against.length || objective(one) === $("regret-of").value);
  const bracket = (name) => ({ values: column(`regret/${name}`), low: column(`low/${name}`), high: column(`high/${name}`), bound: column(`bound/${name}`) });
  charts.regret.show(xs, of("regret", bracket).filter((one) => alike.some((other) => other.name === one.name)), over, whyUnknown(alike));
  const mixtures = now.learners.filter((one) => Object.keys(one.mixture).length).map((one) => one.name);
  $("mixture-choice").hidden = mixtures.length < 2;
  choices($("mixture-of"), mixtures);
  const mixed = now.learners.find((one) => one.name === $("mixture-of").value);
  charts.mixture.show(xs, mixed ? Object.keys(mixed.mixture).map((member, index) => ({ name: member, index, values: column(`mixture/${mixed.name}/${member}`) })) : [], over,
    began() && !mixed ? "No learner here is a mixture of rules." : "The curve begins with the first event.");
  const times = recent.map((point) => point.time);
  charts.rate.show(times, [{ name: "events per second", index: 0, values: recentColumn("rate") }], "time", "Waiting for events.");
  charts.lag.show(times, [{ name: "lag", index: 0, values: recentColumn("lag") }], "time", began() && !recent.some((point) => known(point.lag)) ? "The source does not report its lag." : "Waiting for events.");
}

const began = () => now.events_polled_total > 0;

// Why there is no regret to draw.
function whyUnknown(learners) {
  if (!now.regret_enabled) return "Regret is disabled: regret.enabled is false.";
  if (!began()) return "The curve begins after the first few thousand events.";
  const reasons = new Map();
  for (const one of learners) if (one.regret_unknown) reasons.set(one.regret_unknown, [...(reasons.get(one.regret_unknown) || []), one.name]);
  if (!reasons.size) return "The curve begins with the first solution of the comparator.";
  return `Unknown so far. ${[...reasons].map(([why, names]) => `${names.join(", ")}: ${why}.`).join(" ")}`;
}

async function largest() {
  const of = $("weights-of").value, text = $("search").value;
  if (of) weights(await ask(`api/weights?top=100&learner=${encodeURIComponent(of)}&q=${encodeURIComponent(text)}`), text !== "");
}

function choose(name) {
  if (!hidden.delete(name)) hidden.add(name);
  table(now, hidden, choose);
  draw();
}

async function round() {
  try {
    const config = $("config").textContent === "" ? "?config=1" : "";
    now = await ask(`api/status${config}`);
    if (now.config) $("config").textContent = now.config;
    await series();
    head(now);
    tiles(now);
    table(now, hidden, choose);
    choices($("weights-of"), now.learners.map((one) => one.name));
    invalidRecords(now);
    partitions(now); workers(now); served(now);
    draw();
    await largest();
    lost = 0;
    $("notice").hidden = true;
  } catch (error) {
    lost += 1;
    if (lost >= 2) {
      const stopped = now && now.state === "stopped";
      if (!stopped) {
        $("state").className = "state bad";
        say($("state-text"), "unreachable");
      }
      say($("notice"), stopped ? "The daemon has stopped. These are its last values." : error.message === "token required" ? "Token required: reload the page." : "The daemon does not answer. These are its last values; the page keeps trying.");
      $("notice").className = stopped ? "notice calm" : "notice";
      $("notice").hidden = false;
    }
  }
  setTimeout(round, document.hidden ? 5000 : Math.min(1000 * 2 ** Math.max(0, lost - 3), 10000));
}

function pressed(on, off) {
  $(on).setAttribute("aria-pressed", "true");
  $(off).setAttribute("aria-pressed", "false");
  if (now) draw();
}

$("span-life").addEventListener("click", () => { recentSpan = false; pressed("span-life", "span-recent"); });
$("span-recent").addEventListener("click", () => { recentSpan = true; pressed("span-recent", "span-life"); });
$("loss-mean").addEventListener("click", () => { recentLoss = false; pressed("loss-mean", "loss-recent"); });
$("loss-recent").addEventListener("click", () => { recentLoss = true; pressed("loss-recent", "loss-mean"); });
$("mixture-of").addEventListener("change", draw);
$("regret-of").addEventListener("change", draw);
for (const [id, kind] of [["search", "input"], ["weights-of", "change"]]) $(id).addEventListener(kind, () => largest().catch(() => {}));

const dark = matchMedia("(prefers-color-scheme: dark)");
const remembered = () => { try { return localStorage.getItem("streamlearn-theme"); } catch { return null; } };
const paint = () => document.documentElement.classList.toggle("dark", remembered() ? remembered() === "dark" : dark.matches);
$("theme").addEventListener("click", () => {
  const to = document.documentElement.classList.contains("dark") ? "light" : "dark";
  try { localStorage.setItem("streamlearn-theme", to); } catch { /* not available in private windows */ }
  document.documentElement.classList.toggle("dark", to === "dark");
});
dark.addEventListener("change", paint);
paint();
round();
