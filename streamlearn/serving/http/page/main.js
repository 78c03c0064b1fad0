"use strict";
const at = (id) => document.getElementById(id);
const headers = () => {
  const token = at("token").value;
  return token ? { Authorization: "Bearer " + token } : {};
};
const number = (x) => (typeof x === "number" ? String(Number(x.toPrecision(6))) : "");
const text = (x) => (typeof x === "string" ? x : JSON.stringify(x));

function say(message, failed) {
  at("status").textContent = message;
  at("status").className = failed ? "failed" : "";
}

async function learners() {
  const answer = await fetch("/v1/learners", { headers: headers() });
  at("access").hidden = answer.status !== 401 && !at("token").value;
  if (!answer.ok) {
    say(answer.status === 401 ? "This server needs a token." : "No model is published yet.", true);
    return;
  }
  const found = (await answer.json()).learners;
  at("learner").replaceChildren(
    ...found.map((one) => new Option(one.learner, one.learner, one.default, one.default)));
  say("");
}

function row(one) {
  const line = document.createElement("tr");
  const name = one.name === null ? "(intercept)" : text(one.name);
  for (const value of [name, number(one.value), number(one.weight), number(one.contribution)])
    line.insertCell().textContent = value;
  return line;
}

function show(answer) {
  const one = answer.predictions ? answer.predictions[0] || {} : answer;
  const version = "version " + answer.version;
  const shares = one.probability === undefined ? "" : "probability " + number(one.probability) + ", ";
  at("label").textContent = text(one.label === undefined ? one.value : one.label);
  at("detail").textContent = shares + "score " + (number(one.score) || text(one.score)) + ", " + version;
  at("reasons").replaceChildren(...(one.contributions || []).map(row));
  at("raw").textContent = JSON.stringify(answer, null, 2);
  at("result").hidden = false;
}

async function predict() {
  const body = at("event").value;
  // what is tried is not logged, or it would be learned
  const path = "/v1/predict?explain=true&log=false&learner=" + encodeURIComponent(at("learner").value);
  const quoted = body.replaceAll("'", "'\\''");
  at("curl").textContent = `curl '${location.origin}${path}' -d '${quoted}'`;
  at("result").hidden = true;
  const answer = await fetch(path, { method: "POST", headers: headers(), body });
  const found = await answer.json();
  if (answer.ok) {
    say("");
    show(found);
  } else {
    say(found.error.reason, true);
  }
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  predict().catch((error) => say(String(error), true));
});
at("token").addEventListener("change", () => learners().catch(() => {}));
learners().catch((error) => say(String(error), true));
