"use strict";
/* What the scripts of all pages share: the data, numbers for people, ticks, and a chart with axes. */
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const escape = text => String(text).replace(/[&<>"']/g, c => "&#" + c.charCodeAt(0) + ";");

/* --- numbers for people --- */
const short = x => Number(x.toPrecision(3)).toString();
const seconds = s => s === null ? "never" : s < 1e-3 ? short(s * 1e6) + " µs" : s < 1 ? short(s * 1e3) + " ms" : s < 100 ? short(s) + " s"
  : s < 5940 ? Math.round(s) + " s" : short(s / 3600) + " h";
const scaled = (x, units, unit) => {
  let u = 0;
  while (x >= 999.5 && u + 1 < units.length) { x /= 1000; u++; }
  return short(x) + units[u] + unit;
};
const bytes = b => b === null ? "–" : scaled(b, [" ", " k", " M", " G", " T"], "B");
const count = n => n === null ? "–" : scaled(n, ["", "k", "M", "G"], "");
const percent = x => short(x) + " %";
const figure6 = x => x === null || x === undefined ? "–" : String(Number(x.toPrecision(6)));
/* Options as they are given: a list or a text comes as a configuration file has it, [a.csv] or "-1". */
const wordsOf = options => Object.entries(options || {}).map(([k, v]) => "--" + k + " " + v.replace(/^\[(.*)\]$/, "$1").replace(/^"(.*)"$/, "$1")).join(" ");
/* A list of [name, value] in the element dl of this id. */
const showFacts = (id, facts) => { byId(id).innerHTML = facts.map(([k, v]) => `<dt>${escape(k)}</dt><dd>${escape(v)}</dd>`).join(""); };

/* --- ticks --- */
/* An axis from a to b; where these are equal, or differ by the rounding of numbers alone, a wider one: steps between ticks would
 * be lost in it. */
const spread = (a, b) => { const size = Math.max(Math.abs(a), Math.abs(b)), half = Math.max(0.5, 1e-6 * size);
  return b - a > 1e-9 * size ? [a, b] : [a - half, b + half]; };
function ticksLog(low, high, most) {
  const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let e = first; e <= last; e += step) ticks.push(e);
  return ticks;
}
function ticksLinear(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough), ticks = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-6; x += step) ticks.push(Math.abs(x) < step * 1e-6 ? 0 : x);
  return ticks;
}

/* --- a chart ---
 * frame: { figure, caption, title (below), tall, x: [low, high], y: [low, high], logX, showX, showY, marksX: [[x, text]] }.
 * paint(X, Y) returns the inner SVG; X and Y turn values into places. Returns the svg element. */
function chart(frame, paint) {
  const width = Math.max(240, frame.figure.clientWidth), tall = frame.tall || 280;
  const m = { left: 56, right: 12, top: 10, bottom: 40 };
  const f = frame.logX ? x => Math.log10(x) : x => x;
  const showX = frame.showX || short, showY = frame.showY || short;
  const [x0, x1] = spread(...frame.x.map(f)), [y0, y1] = spread(...frame.y);
  const X = x => m.left + (f(x) - x0) / (x1 - x0) * (width - m.left - m.right);
  const Y = y => tall - m.bottom - (y - y0) / (y1 - y0) * (tall - m.top - m.bottom);
  const room = Math.max(2, Math.floor((width - m.left - m.right) / 70));
  let svg = `<svg viewBox="0 0 ${width} ${tall}" height="${tall}" role="img" aria-label="${escape(frame.caption)}">`;
  for (const t of ticksLinear(y0, y1, Math.max(2, Math.floor(tall / 50))))
    svg += `<path class="grid" d="M${m.left} ${Y(t)}H${width - m.right}"/><text x="${m.left - 8}" y="${Y(t) + 4}" text-anchor="end">${showY(t)}</text>`;
  let logs = frame.logX ? ticksLog(x0, x1, room).map(e => 10 ** e) : null;
  if (logs && logs.length < 2) logs = [frame.x[0], frame.x[1]]; /* less than a power of ten: its ends */
  const marks = frame.marksX || (logs || ticksLinear(x0, x1, room)).map(x => [x, showX(x)]);
  for (const [x, text] of marks)
    svg += `<path class="grid" d="M${X(x)} ${m.top}V${tall - m.bottom}"/><text x="${X(x)}" y="${tall - m.bottom + 18}" text-anchor="middle">${escape(text)}</text>`;
  svg += `<text x="${(m.left + width - m.right) / 2}" y="${tall - 4}" text-anchor="middle">${escape(frame.title)}</text>`;
  frame.figure.innerHTML = `<figcaption>${escape(frame.caption)}</figcaption>` + svg + paint(X, Y) + "</svg>";
  return frame.figure.querySelector("svg");
}

/* --- a small box beside the pointer --- */
const tip = byId("tip");
function tipAt(event, html) {
  tip.innerHTML = html;
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, event.clientY - box.height - 12) + "px";
}
const hide = () => { tip.style.display = "none"; };
/* Elements with a data-tip show it while the pointer is on them. */
document.addEventListener("pointermove", event => {
  const at = event.target.closest ? event.target.closest("[data-tip]") : null;
  if (at) tipAt(event, escape(at.dataset.tip).replace(/\n/g, "<br>"));
  else if (tip.dataset.own === undefined) hide();
});
let wide = innerWidth;
function redraw(draw) {
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; draw(); } });
  draw();
}
