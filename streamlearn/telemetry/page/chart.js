// A chart of lines over events or time, with bands and bounds; for mouse, touch and arrow keys.
// With options.log the axis is logarithmic if values span decades and none is negative.

const EDGE = { left: 52, right: 14, top: 8, bottom: 24 };

function ticks(low, high, about, least = 0) {
  const raw = Math.max((high - low) / about, least);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const found = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) found.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return found;
}

function decades(low, high) {
  const found = [], factors = high - low < 2.5 ? [1, 3] : [1];
  for (let power = Math.floor(low); power <= high; power += 1) found.push(...factors.map((f) => f * 10 ** power));
  return found.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
}

class Chart {
  // options: label, from0 (whether the axis begins at 0), settles (whether the first points may be
  // cut off), log
  constructor(host, options) {
    this.host = host;
    this.options = options;
    this.svg = shape("svg", { tabindex: "0", role: "img" });
    this.tip = element("div", { class: "tip", hidden: "" });
    this.empty = element("div", { class: "empty" },
      shape("svg", { viewBox: "0 0 80 38", "aria-hidden": "true" }, shape("path", { d: "M3 4c8 24 22 30 74 31" })),
      element("p", {}, "Waiting for the daemon."));
    this.legend = element("ul", { class: "legend", hidden: "" });
    host.append(this.svg, this.tip, this.empty);
    host.after(this.legend);
    this.series = [];
    this.at = null;
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.svg.addEventListener("blur", () => this.leave());
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(host);
  }

  // xs: positions of the points; series: [{name, index, values}] for lines, [{name, index,
  // values, low, high, bound}] for estimates with brackets; over: "events" or "time"; empty: the text without any of them
  show(xs, series, over, empty) {
    this.xs = xs;
    this.over = over;
    this.series = series.filter((one) => (one.values || []).some(known));
    say(this.empty.lastChild, this.series.length ? "One point so far; the curve begins with the next." : empty);
    this.legend.hidden = this.series.length < 2;
    keyed(this.legend, this.series, (one) => one.name, (one) => element("li", {}, swatch(one.index), one.name), () => {});
    this.draw();
  }

  range() {
    const all = [];
    let bound = -Infinity;
    for (const one of this.series) {
      const past = this.options.settles && this.xs.length > 30 ? Math.ceil(this.xs.length / 25) : 0;
      for (const values of [one.values, one.low, one.high]) if (values) all.push(...values.slice(past).filter(known));
      if (one.bound) { // a distant bound must not flatten the curve
        const top = Math.max(...one.high.filter(known));
        bound = Math.max(bound, ...one.bound.filter((v) => known(v) && v < 4 * top));
      }
    }
    let low = Math.min(...all), high = Math.max(bound, ...all);
    const least = Math.min(...all.filter((v) => v > 0)); // zeros are below a logarithmic axis
    this.log = Boolean(this.options.log) && low >= 0 && high > 20 * least;
    if (this.log) return [Math.log10(least) - 0.04, Math.log10(high) + 0.04];
    if (this.options.from0) low = Math.min(0, low);
    if (high <= low) high = low + (Math.abs(low) || 1) * 0.1;
    const room = (high - low) * 0.06;
    return [this.options.from0 && low === 0 ? 0 : low - room, high + room];
  }

  draw() {
    const { width, height } = this.host.getBoundingClientRect();
    const some = this.series.length > 0 && this.xs.length > 1;
    this.empty.hidden = some;
    this.svg.style.visibility = some ? "" : "hidden";
    this.svg.setAttribute("tabindex", some ? "0" : "-1");
    if (!some || width < 60) { this.leave(); return; }
    const [low, high] = this.range();
    const first = this.xs[0], last = this.xs[this.xs.length - 1];
    this.x = (v) => EDGE.left + ((v - first) / (last - first || 1)) * (width - EDGE.left - EDGE.right);
    const scaled = (v) => (this.log ? Math.log10(Math.max(v, 1e-300)) : v);
    this.y = (v) => height - EDGE.bottom - ((scaled(v) - low) / (high - low)) * (height - EDGE.top - EDGE.bottom);
    const drawn = [];
    for (const v of this.log ? decades(low, high) : ticks(low, high, height < 200 ? 4 : 5)) {
      const y = this.y(v).toFixed(1);
      drawn.push(shape("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y, y2: y, class: v === 0 ? "zero" : "grid" }),
        shape("text", { x: EDGE.left - 8, y: +y + 4, "text-anchor": "end" }, mark(v)));
    }
    const marks = this.over === "time" ? ticks(first - last, 0, width < 400 ? 3 : 5, 1) : ticks(first, last, width < 400 ? 3 : 5);
    for (const v of marks) {
      const x = this.x(this.over === "time" ? last + v : v);
      const text = this.over === "time" ? (v === 0 ? "now" : "−" + span(-v)) : mark(v);
      const anchor = x > width - 46 ? "end" : x < EDGE.left + 12 ? "start" : "middle";
      drawn.push(shape("text", { x: x.toFixed(1), y: height - 6, "text-anchor": anchor }, text));
    }
    const clip = `clip-${this.host.id}`;
    drawn.push(shape("clipPath", { id: clip }, shape("rect", { x: EDGE.left, y: 0, width: width - EDGE.left - EDGE.right + 3, height: height - EDGE.bottom + 1 })));
    const lines = shape("g", { "clip-path": `url(#${clip})` });
    for (const one of this.series) if (one.low && one.high) lines.append(shape("path", { d: this.area(one.low, one.high), class: `band f${one.index % 8}` }));
    for (const one of this.series) if (one.bound) lines.append(shape("path", { d: this.path(one.bound), class: `bound s${one.index % 8}` }));
    for (const one of this.series) {
      for (const [side, kind] of [[one.low, "edge"], [one.high, "edge"], [one.values, "line"]]) {
        if (side) lines.append(shape("path", { d: this.path(side), class: `${kind} ${stroke(one.index)}` }));
      }
    }
    drawn.push(lines);
    this.cross = shape("line", { y1: EDGE.top, y2: height - EDGE.bottom, class: "cross", visibility: "hidden" });
    drawn.push(this.cross);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...drawn);
    const now = this.series.map((one) => `${one.name} ${this.read(one, this.xs.length - 1)}`);
    this.svg.setAttribute("aria-label", `${this.options.label}; now ${now.join(", ")}. Arrow keys read the curve.`);
    if (this.at !== null) this.mark(Math.min(this.at, this.xs.length - 1), false);
  }

  path(values) {
    let d = "", pen = false;
    values.forEach((v, i) => {
      if (known(v)) { d += `${pen ? "L" : "M"}${this.x(this.xs[i]).toFixed(1)} ${this.y(v).toFixed(1)}`; pen = true; }
      // bridge gaps: some values are measured less often than points are added
    });
    return d;
  }

  area(low, high) {
    const there = this.xs.map((_, i) => i).filter((i) => known(low[i]) && known(high[i]));
    const spot = (i, v) => `${this.x(this.xs[i]).toFixed(1)} ${this.y(v).toFixed(1)}`;
    const up = there.map((i) => spot(i, high[i])), down = there.reverse().map((i) => spot(i, low[i]));
    return up.length ? `M${[...up, ...down].join("L")}Z` : "";
  }

  // the value of a series at a point, or the last known one before it
  last(values, i) {
    return values[i] ?? values.slice(0, i).findLast(known);
  }

  read(one, i) {
    const value = figure(this.last(one.values, i));
    return one.low ? `${value} (${range(this.last(one.low, i), this.last(one.high, i))})` : value;
  }

  point(event) {
    if (!this.x) return;
    const x = event.clientX - this.host.getBoundingClientRect().left;
    let best = 0;
    this.xs.forEach((v, i) => { if (Math.abs(this.x(v) - x) < Math.abs(this.x(this.xs[best]) - x)) best = i; });
    this.mark(best, false);
  }

  key(event) {
    const last = this.xs.length - 1, now = this.at ?? last;
    const far = Math.max(1, Math.round(last / 20));
    const to = { ArrowLeft: now - far, ArrowRight: now + far, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.leave();
    if (to === undefined) return;
    event.preventDefault();
    this.mark(Math.max(0, Math.min(last, to)), true);
  }

  mark(i, aloud) {
    this.at = i;
    const x = this.x(this.xs[i]);
    this.cross.setAttribute("x1", x);
    this.cross.setAttribute("x2", x);
    this.cross.setAttribute("visibility", "visible");
    const where = this.over === "time" ? new Date(this.xs[i] * 1000).toLocaleTimeString() : `${count(this.xs[i])} events`;
    const value = (one) => this.last(one.values, i);
    const rows = [...this.series].filter((one) => known(value(one))).sort((a, b) => value(b) - value(a));
    this.tip.replaceChildren(element("p", {}, where), ...rows.map((one) =>
      element("div", {}, element("span", {}, swatch(one.index), element("span", {}, one.name)), element("span", {}, this.read(one, i)))));
    this.tip.hidden = false;
    const width = this.host.clientWidth;
    this.tip.style.left = x < width / 2 ? `${x + 12}px` : "";
    this.tip.style.right = x < width / 2 ? "" : `${width - x + 12}px`;
    if (aloud) say($("spoken"), `${where}: ${rows.map((one) => `${one.name} ${this.read(one, i)}`).join(", ")}`);
  }

  leave() {
    this.at = null;
    this.tip.hidden = true;
    if (this.cross) this.cross.setAttribute("visibility", "hidden");
  }
}
