// Everything except curves: tiles, the table of learners, weights, invalid records, partitions.

function tile(label, value, note = "", mood = "") {
  return { label, value, note, mood };
}

function tiles(now) {
  const bad = Object.values(now.invalid_records_total || {}).reduce((a, b) => a + b, 0);
  const polled = now.events_polled_total || 0;
  const lags = now.partitions.map((p) => p.lag).filter(known);
  const lag = lags.length ? lags.reduce((a, b) => a + b, 0) : null;
  const life = Math.max(0, ...now.learners.map((one) => one.lifetime_events_learned || 0));
  const saved = now.checkpoint_timestamp_seconds;
  const failing = now.checkpoint_failures_total > 0;
  const found = [
    tile("Events learned", count(life), "in total"),
    tile("Events per second", count(now.rate), "now"),
    tile("Lag", count(lag), lag === null ? "unknown" : known(now.rate) && now.rate > 0 && lag > now.rate ? `${span(lag / now.rate)} at this rate` : polled || lag ? "keeping up" : ""),
    tile("Invalid records", count(bad), bad ? `${share(bad / polled)} since the start` : polled ? "none since the start" : "no records yet", bad > 0.05 * polled && bad ? "warn" : ""),
    tile("Last checkpoint", known(saved) ? span(now.time - saved) : "none", known(saved) ? "ago" : failing ? "" : now.keeps ? "not yet" : "not configured", failing ? "bad" : ""),
    tile("Features", count(now.slots), !known(now.slots) ? "" : now.hash_load_ratio !== null ? `${share(now.hash_load_ratio)} of hash slots used` : now.rejected_features > 0 ? "table full" : "by name", now.rejected_features > 0 ? "warn" : ""),
  ];
  if (known(now.held_events)) {
    const outcomes = now.delayed_labels_total;
    found.push(tile("Held for labels", count(now.held_events), `${count(outcomes.joined)} joined, ${count(outcomes.timed_out)} timed out, ${count(outcomes.orphaned)} orphaned`));
    found.push(tile("Oldest held event", span(now.held_oldest_seconds), `${count(outcomes.corrected)} corrected, ${count(outcomes.duplicates)} duplicates`));
  }
  if (failing) found[4].note += ` ${count(now.checkpoint_failures_total)} failed`;
  keyed($("tiles"), found, (one) => one.label,
    (one) => element("div", {}, element("dt", {}, one.label), element("dd"), element("dd", { class: "note" })),
    (child, one) => {
      say(child.children[1], one.value);
      child.children[1].className = one.mood;
      say(child.children[2], one.note);
    });
}

const always = () => "";
const lossOf = (one) => one.loss_name;
const bothOf = (one) => `${one.loss_name} + ${one.comparator}`;

// the bracket of the regret per event; it covers the events before the latest solve
const perEvent = (one) => (known(one.regret_low) && known(one.regret_high) ? [one.regret_low / one.regret_events, one.regret_high / one.regret_events] : null);
// the estimate, and the distance to the ends of its bracket
const estimate = (one) => (known(one.regret) ? `estimate ${figure(one.regret / one.regret_events)} per event, standard error ${figure((one.regret_stderr ?? 0) / one.regret_events)}` : "");

// [heading, value, format, which is best (-1 lowest, 1 highest, 0 neither), and what must be equal
// for two learners to be comparable]
const COLUMNS = [
  ["Loss", (one) => one.progressive_loss, figure, -1, lossOf],
  ["Recent loss", (one) => one.recent_loss, figure, -1, lossOf],
  ["Error rate", (one) => one.error_ratio, share, -1, always],
  ["Recent error rate", (one) => one.recent_error_ratio, share, -1, always],
  ["Abs. error", (one) => one.absolute_error, figure, -1, always],
  ["Recent abs. error", (one) => one.recent_absolute_error, figure, -1, always],
  ["ROC area", (one) => one.recent_roc_auc, (v) => figure(v, 3), 1, always],
  ["Calibration", (one) => one.recent_calibration_ratio, (v) => figure(v, 3), 0, always],
  ["Regret / event", perEvent, (v) => (v ? range(...v) : "unknown"), -1, bothOf],
  ["Non-zero", (one) => one.nonzero_weights, count, 0, always],
];

// Whether a learner skips events, so that its values are those of the others only.
const skips = (one) => one.lifetime_events_diverged > 0;

// Whether a learner is better than all comparable ones, for any values inside their brackets; false
// while one of them is unknown.
function isBest(one, learners, value, sense, kind) {
  const ends = (other) => { const v = value(other) ?? NaN; return Array.isArray(v) ? v : [v, v]; };
  const [low, high] = ends(one);
  const others = learners.filter((other) => other !== one && !skips(other) && kind(other) === kind(one));
  if (!sense || !others.length || skips(one)) return false;
  return others.every((other) => (sense < 0 ? high < ends(other)[0] : low > ends(other)[1]));
}

function table(now, hidden, choose) {
  const learners = now.learners;
  const columns = COLUMNS.filter(([, value]) => learners.some((one) => value(one) !== null && value(one) !== undefined));
  const host = $("table"), shape_ = columns.map((c) => c[0]).join("|");
  if (host.dataset.shape !== shape_) {
    host.dataset.shape = shape_;
    const heads = columns.map(([title]) => element("th", { scope: "col" }, title));
    host.replaceChildren(element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Learner"), ...heads)), element("tbody"));
  }
  keyed(host.tBodies[0], learners.map((one, i) => ({ ...one, i })), (one) => one.name,
    (one) => {
      const button = element("button", { type: "button", class: "name" }, swatch(one.i), element("span", {}, one.name));
      button.addEventListener("click", () => choose(one.name));
      return element("tr", {}, element("th", { scope: "row" }, button, element("span", { class: "model" }, one.model)),
        ...columns.map(([title]) => element("td", { "data-head": title })));
    },
    (row, one) => {
      const button = row.querySelector("button");
      button.setAttribute("aria-pressed", String(!hidden.has(one.name)));
      const best = button.querySelector(".best");
      if (one.currently_best === 1 && !best) button.append(element("span", { class: "best" }, "best"));
      if (one.currently_best !== 1 && best) best.remove();
      const lost = button.querySelector(".lost"), text = `${count(one.lifetime_events_diverged)} diverged`;
      if (skips(one) && !lost) button.append(element("span", { class: "lost" }, text));
      if (lost) say(lost, text);
      columns.forEach(([, value, format, sense, kind], k) => {
        const cell = row.children[k + 1];
        say(cell, format(value(one)));
        cell.title = value === perEvent && (one.regret_unknown || estimate(one)) || "";
        cell.className = isBest(learners[one.i], learners, value, sense, kind) ? "lead" : "";
      });
      const several = new Set(learners.map(lossOf)).size > 1 && !one.model.includes(one.loss_name);
      say(row.querySelector(".model"), several ? `${one.loss_name} · ${one.model}` : one.model);
    });
}

function weights(found, searching) {
  const list = $("weights"), shown = found.weights;
  const top = Math.max(...shown.map((one) => Math.abs(one.value)), 1e-300);
  say($("weights-hint"), found.time === null
    ? "Weights are shown once events are learned."
    : !found.kept
    ? "All weights are zero."
    : searching
      ? `${count(found.matching)} of the ${count(found.kept)} largest match`
      : `The ${count(shown.length)} largest of ${count(found.kept)}${found.kept === 1000 ? " or more" : ""} non-zero weights`);
  keyed(list, shown, (one) => one.name,
    (one) => element("li", {}, element("span", { class: "label", title: one.name }, one.name), element("span", { class: "bar", "aria-hidden": "true" }, element("i")), element("span", { class: "value" })),
    (row, one) => {
      const bar = row.children[1].firstChild;
      bar.className = one.value > 0 ? "up" : "down";
      bar.style.width = `${(50 * Math.abs(one.value)) / top}%`;
      say(row.children[2], (one.value > 0 ? "+" : "") + figure(one.value, 3));
    });
}

function invalidRecords(now) {
  const list = $("invalid"), events = now.invalid_records;
  const all = Object.entries(now.invalid_records_total).filter(([, n]) => n > 0);
  say($("invalid-hint"), all.length ? `Since the start, by reason: ${all.map(([kind, n]) => `${kind} ${count(n)}`).join(", ")}` : "");
  if (!events.length && !now.events_polled_total) {
    list.replaceChildren();
    say($("invalid-hint"), "No records yet.");
    return;
  }
  if (!events.length) {
    if (!list.querySelector(".fine")) {
      const tick = shape("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, shape("circle", { cx: 12, cy: 12, r: 9.5 }), shape("path", { d: "M7.5 12.5l3 3 6-6.5" }));
      list.replaceChildren(element("li", { class: "fine" }, tick, element("p", {}, "All records so far are valid.")));
    }
    return;
  }
  keyed(list, events, (one) => `${one.topic}:${one.partition}:${one.offset}`,
    (one) => {
      const said = one.reason || (one.field === null ? "" : `Field “${one.field}”: `) + now.reasons[one.code];
      const row = element("li", {}, element("div", {}, said),
        element("div", { class: "where" }, `${new Date(one.time * 1000).toLocaleTimeString()} · ${one.topic} · partition ${one.partition} · offset ${one.offset}`));
      if (one.payload !== null) row.append(element("code", {}, one.payload));
      return row;
    }, () => {});
}

function partitions(now) {
  const all = now.partitions;
  $("partitions-card").hidden = all.length < 2;
  const host = $("partitions");
  if (!host.tBodies.length) {
    const heads = ["Topic", "Partition", "Position", "Lag"].map((text) => element("th", { scope: "col" }, text));
    host.append(element("thead", {}, element("tr", {}, ...heads)), element("tbody"));
  }
  keyed(host.tBodies[0], all, (one) => `${one.topic}:${one.partition}`,
    (one) => element("tr", {}, element("td", {}, one.topic), element("td", {}, one.partition), element("td"), element("td")),
    (row, one) => { say(row.children[2], known(one.offset) ? grouped.format(one.offset) : "–"); say(row.children[3], count(one.lag)); });
}

function workers(now) {
  const all = now.workers, refused = Object.entries(now.rounds_refused_total);
  $("workers-card").hidden = !all.length;
  const host = $("workers");
  if (!host.tBodies.length) {
    const heads = ["Worker", "Partitions", "Events per second", "Lag", "Last accepted round"].map((text) => element("th", { scope: "col" }, text));
    host.append(element("thead", {}, element("tr", {}, ...heads)), element("tbody"));
  }
  const turned = refused.map(([reason, n]) => `${count(n)} for its ${reason}`).join(", ");
  say($("rounds"), [
    `${count(now.rounds_merged_total ?? 0)} rounds merged`,
    known(now.round_merge_seconds) ? `the last in ${figure(now.round_merge_seconds, 2)} s` : "",
    turned ? `refused: ${turned}` : "none refused",
    now.workers_replaced_total > 0 ? `${count(now.workers_replaced_total)} workers replaced` : "",
  ].filter(Boolean).join(", "));
  keyed(host.tBodies[0], all, (one) => one.worker,
    (one) => element("tr", {}, element("td", {}, one.worker), ...[1, 2, 3, 4].map(() => element("td"))),
    (row, one) => {
      [count(one.partitions), count(one.rate), count(one.lag), known(one.round) ? `${span(now.time - one.round)} ago` : "none yet"]
        .forEach((text, k) => say(row.children[k + 1], text));
    });
}

function served(now) {
  const all = now.served;
  $("served-card").hidden = !all.length;
  const host = $("served");
  if (!host.tBodies.length) {
    const heads = ["Learner", "Arm", "Events", "Loss", "Interval", "Difference", "Interval"].map((text) => element("th", { scope: "col" }, text));
    host.append(element("thead", {}, element("tr", {}, ...heads)), element("tbody"));
  }
  const between = (low, high) => (known(low) && known(high) ? range(low, high) : "unknown");
  keyed(host.tBodies[0], all, (one) => `${one.learner} ${one.arm}`,
    (one) => element("tr", {}, element("td", {}, one.learner), element("td", {}, one.arm || "–"), ...[1, 2, 3, 4, 5].map(() => element("td"))),
    (row, one) => {
      const compared = known(one.difference);
      [count(one.events), figure(one.loss), between(one.low, one.high), compared ? figure(one.difference) : "–",
        compared ? between(one.difference_low, one.difference_high) : "–"].forEach((text, k) => say(row.children[k + 2], text));
      row.children[5].className = compared && one.difference_high < 0 ? "lead" : "";
    });
}

const STATES = {
  active: ["good", "learning"], standby: ["warn", "standby"], loading: ["warn", "loading"], starting: ["warn", "starting"],
  stopping: ["warn", "stopping"], stopped: ["bad", "stopped"],
};

// The state of the daemon: the CSS class and the text.
function condition(now) {
  const [mood, text] = STATES[now.state] || ["warn", now.state];
  if (now.state === "stopped") return [now.exit ? "bad" : "", `stopped: ${now.reason}`];
  if (now.state !== "active") return [mood, text];
  if (!now.ready) return ["warn", now.why];
  if (now.ended) return ["", "all events are learned"];
  return [mood, now.events_polled_total ? text : "waiting for events"];
}

function head(now) {
  const [mood, text] = condition(now);
  $("state").className = `state ${mood}`;
  say($("state-text"), text);
  const up = `${now.source} source, up ${span(now.time - now.start_timestamp_seconds)}`;
  const again = now.restarts > 0 ? `, ${count(now.restarts)} ${now.restarts === 1 ? "restart" : "restarts"}` : "";
  say($("about"), up + again + (now.epoch > 0 ? `, epoch ${count(now.epoch)}` : ""));
  $("note").hidden = !now.note;
  say($("note"), now.note);
  say($("version"), `streamlearn ${now.version}`);
}

function choices(select, names) {
  if (select.dataset.names === names.join("\n")) return;
  const chosen = select.value;
  select.dataset.names = names.join("\n");
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  if (names.includes(chosen)) select.value = chosen;
}
