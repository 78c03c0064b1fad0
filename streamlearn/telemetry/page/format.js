// Formatting of numbers, and creation of elements; text is never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function count(value) {
  if (!known(value)) return "–";
  if (Math.abs(value) < 1e6) return grouped.format(value);
  if (Math.abs(value) >= 1e15) return value.toExponential(2);
  for (const [size, unit] of [[1e12, " T"], [1e9, " bn"], [1e6, " M"]]) {
    if (Math.abs(value) >= size) return (value / size).toFixed(value < 100 * size ? 2 : 0) + unit;
  }
}

function figure(value, digits = 4) {
  if (!known(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return count(value).replace("-", "−");
  if (size < 1e-4) return value.toExponential(2).replace("-", "−");
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return (size >= 1e4 ? grouped.format(value) : value.toFixed(Math.min(places, 5))).replace("-", "−");
}

// A bracket: both ends, or one figure if they look equal.
function range(low, high) {
  if (!known(low) || !known(high)) return "unknown";
  const [a, b] = [figure(low, 2), figure(high, 2)];
  return a === b ? a : `${a} … ${b}`;
}

// axis labels: no more digits than needed
const brief = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
function mark(value) {
  const size = Math.abs(value);
  if (size < 1e-4) return figure(value, 3);
  if (size >= 1e15) return Number(value.toPrecision(2)).toExponential().replace("-", "−");
  const [unit, name] = [[1e12, " T"], [1e9, " bn"], [1e6, " M"], [1e4, "k"]].find(([least]) => size >= least) || [1, ""];
  return (brief.format(value / (name === "k" ? 1e3 : unit)) + name).replace("-", "−");
}

const share = (value) => (known(value) ? (100 * value).toFixed(value < 0.1 ? 2 : 1) + " %" : "–");

function span(seconds) {
  if (!known(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 100) return `${s} s`;
  if (s < 6000) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} days`;
}

// Sets text only if it changed, to avoid flicker and keep selections.
function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

// Creates one child of `parent` per item, by key, and later only updates it.
function keyed(parent, items, key, make, update) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, i) => {
    const name = key(item);
    let child = there.get(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    there.delete(name);
    update(child, item);
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] || null);
  });
  there.forEach((child) => child.remove());
}

// The color and the dashes of a line: after 8 colors each has other dashes than before.
const stroke = (index) => `s${index % 8} k${(index + Math.floor(index / 8)) % 8}`;

function swatch(index) {
  return shape("svg", { viewBox: "0 0 34 8", "aria-hidden": "true" },
    shape("line", { x1: 1, y1: 4, x2: 33, y2: 4, class: `line ${stroke(index)}` }));
}
