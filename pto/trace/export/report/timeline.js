// timeline.js: how is the run drawn, a row for each core?
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Only what is visible is looked at, found by its time; what is narrower than a pixel shares one.
// A second canvas over the first has what follows the pointer, so that moving it draws little.

const canvas = $ ("timeline");
const over = make ("canvas", { id: "over", "aria-hidden": "true" });
canvas.after (over);

const OVERVIEW = 46;
const AXIS = 24;
const TICKS = 15;
const CLUSTER_GAP = 5;
const STRIP_GAP = 7;
const FOLD = 18;
const NARROW = 1.5;
const DIM = 0.22;

const view = { t0: 0, t1: span, scroll: 0 };
const collapsed = new Set ();
let selected = -1;
let isCriticalShown = true;
let hits = null;      // a 1 for each entry that was found; null: nothing is searched for
let hovered = -1;
let pointer = null;   // in the canvas, or null
let place = null;     // where everything of the page is
let ink = null;       // colours of the theme

const stripNames = { ready: "ready tasks", live: "live tasks", scopes: "open scopes", heap: "heap", map: "tensor map",
  pool: "dependency pool", moved: "tensors moved" };

// What is very deep is closed at first.
if (rows.length > 96)
  rows.forEach ((row, r) => {
    if (children[r].length > 0 && row.depth === 0)
      collapsed.add (r);
  });

function readInk () {
  const style = getComputedStyle (document.documentElement);
  ink = {};
  for (const name of ["paper", "panel", "band", "grid", "line", "ink", "muted", "faint", "accent", "critical", "stall", "on",
    "late", "sent", "received", "series1", "series2", "series3", "series4"])
    ink[name] = style.getPropertyValue ("--" + name).trim ();
}

// Clusters in which nothing ran, or workers of a kind that had no task: one line below the rows.
const idle = findIdle ();
let isIdleShown = false;
function findIdle () {
  const groups = new Map ();
  rows.forEach ((row, r) => {
    if (row.depth === 0) {
      const group = groups.get (row.cluster) || groups.set (row.cluster, { kind: row.kind, list: [], isUsed: false }).get (row.cluster);
      group.list.push (r);
      group.isUsed = group.isUsed || runs[r].length > 0 || children[r].length > 0 || firstTransfer[r + 1] > firstTransfer[r];
    }
  });
  const unused = [...groups.values ()].filter (group => !group.isUsed);
  return { rows: new Set (unused.flatMap (group => group.list)), clusters: unused.length,
    kinds: unused.map (({ kind, list }) => count (list.length, kind)).join (", ") };
}

function foldText () {
  const what = data.is_level ? idle.kinds : count (idle.clusters, "cluster");
  return what + " without work" + (isIdleShown ? ", shown" : "");
}

// --- where things are ---

function isShown (r) {
  if (!isIdleShown && idle.rows.has (r))
    return false;
  for (let up = rows[r].parent; up >= 0; up = rows[up].parent)
    if (collapsed.has (up))
      return false;
  return true;
}

// least: the lowest row that is drawn; height: NaN: as much as it takes.
function arrange (width, height, least) {
  const shown = [];
  rows.forEach ((row, r) => {
    if (isShown (r))
      shown.push (r);
  });
  const p = { width, left: width < 620 ? 92 : 152, right: width - 16 };
  let gaps = 0;
  let weight = 0;
  shown.forEach ((r, k) => {
    weight += rows[r].depth > 0 ? 0.7 : 1;
    if (k > 0 && isNewCluster (shown, k))
      gaps += CLUSTER_GAP;
  });
  p.axis = OVERVIEW;
  p.control = OVERVIEW + AXIS + 4;
  p.nControl = 1 + data.schedulers;
  p.tick = p.nControl > 6 ? 9 : TICKS;
  p.top = p.control + p.nControl * p.tick + 8;
  p.strip = strips.length > 4 ? 26 : 34;
  p.strips = strips.length * (p.strip + STRIP_GAP) + 4;
  const fold = idle.rows.size > 0 ? FOLD + CLUSTER_GAP : 0;
  const available = isNaN (height) ? 0 : height - p.top - p.strips - 8 - fold;
  p.row = Math.max (least, Math.min (34, Math.floor ((available - gaps) / Math.max (weight, 1))));
  p.y = new Map ();
  p.h = new Map ();
  p.shown = shown;
  let y = 0;
  shown.forEach ((r, k) => {
    if (k > 0 && isNewCluster (shown, k))
      y += CLUSTER_GAP;
    const h = rows[r].depth > 0 ? Math.max (9, Math.round (p.row * 0.7)) : p.row;
    p.y.set (r, y);
    p.h.set (r, h);
    y += h;
  });
  p.fold = fold > 0 ? y + CLUSTER_GAP : NaN;
  y += fold;
  p.content = y;
  p.bottom = isNaN (height) ? p.top + y : Math.min (height - p.strips, p.top + y + 4);
  p.stripTop = p.bottom + 10;
  if (!isNaN (height) && strips.length > 0)
    p.strip = Math.max (p.strip, Math.min (72, Math.floor ((height - p.stripTop - 8) / strips.length) - STRIP_GAP));
  p.stripBottom = p.stripTop + strips.length * (p.strip + STRIP_GAP) - STRIP_GAP;
  p.height = isNaN (height) ? p.bottom + p.strips + 10 : height;
  return p;
}

function isNewCluster (shown, k) {
  const row = rows[shown[k]];
  const last = rows[shown[k - 1]];
  return row.depth === 0 && (last.depth > 0 || last.cluster !== row.cluster);
}

// The row that stands for one that is folded away.
function standIn (r) {
  while (r >= 0 && !isShown (r))
    r = rows[r].parent;
  return r;
}

function rowMiddle (scene, r) {
  const s = standIn (r);
  return s < 0 ? NaN : scene.place.top - scene.scroll + scene.place.y.get (s) + scene.place.h.get (s) / 2;
}

function makeScene (c, at, t0, t1, scroll, colours) {
  const scale = (at.right - at.left) / (t1 - t0);
  return { c, place: at, t0, t1, scroll, ink: colours, scale, x: t => at.left + (t - t0) * scale };
}

function currentScene () {
  return makeScene (canvas.getContext ("2d"), place, view.t0, view.t1, view.scroll, ink);
}

function timeAt (x) {
  return view.t0 + (x - place.left) / (place.right - place.left) * (view.t1 - view.t0);
}

function rowAt (y) {
  if (y < place.top || y >= place.bottom)
    return -1;
  const at = y - place.top + view.scroll;
  for (const r of place.shown)
    if (at >= place.y.get (r) && at < place.y.get (r) + place.h.get (r))
      return r;
  return -1;
}

function isAtFold (y) {
  const at = y - place.top + view.scroll - place.fold;
  return y >= place.top && y < place.bottom && at >= 0 && at < FOLD;
}

function entryAt (x, y) {
  const r = rowAt (y);
  if (r < 0 || x < place.left || x > place.right)
    return -1;
  const list = runs[r];
  const t = timeAt (x);
  const slack = 3 / (place.right - place.left) * (view.t1 - view.t0);
  let best = -1;
  let distance = slack;
  for (let k = above (latest[r], t - slack); k < list.length && start[list[k]] <= t + slack; k++) {
    const i = list[k];
    const off = t < start[i] ? start[i] - t : t > end[i] ? t - end[i] : 0;
    if (off === 0)
      return i;
    if (off < distance) {
      distance = off;
      best = i;
    }
  }
  return best;
}

// --- drawing ---

const FONT = "Inter, 'Segoe UI', system-ui, -apple-system, 'DejaVu Sans', sans-serif";

// y: the middle of the line; width: it takes no more.
function write (c, text, x, y, font, colour, align = "left", width = undefined) {
  c.font = `${font} ${FONT}`;
  c.textAlign = align;
  c.textBaseline = "middle";
  c.fillStyle = colour;
  c.fillText (text, x, y, width);
}

function fillBox (c, colour, x, y, width, height) {
  c.fillStyle = colour;
  c.fillRect (x, y, width, height);
}

// Draws, and nothing of it outside.
function inside (c, x, y, width, height, drawAll) {
  c.save ();
  c.beginPath ();
  c.rect (x, y, width, height);
  c.clip ();
  drawAll ();
  c.restore ();
}

function isRelated (entry) {
  return related === null || related.has (owner[entry]);
}

// Of what is selected: the task, its producers and consumers; null: nothing is.
let related = null;
function relate () {
  related = null;
  if (selected < 0)
    return;
  const task = owner[selected];
  related = new Set ([task]);
  for (const e of edgesInto (task))
    related.add (producer[e]);
  for (const e of edgesFrom (task))
    related.add (consumer[e]);
}

function isBright (entry) {
  if (hits !== null)
    return hits[entry] === 1 || entry === selected;
  return isRelated (entry);
}

// Columns of one pixel, LEVELS lines for each row, for all that is narrower than that: a column is
// as high as what ran in it took a share of its time, however many runs that were. Lines are drawn
// as high as their row is: as quick for 100 000 tasks as for 1000.
const LEVELS = 8;
const thin = { c: make ("canvas", {}).getContext ("2d", { willReadFrequently: true }), image: null, ratio: 1, rows: [],
  covered: new Float32Array (0), longest: new Int32Array (0), took: new Float32Array (0), bright: new Uint8Array (0) };
const rgb = kernels.map (kernel => [1, 3, 5].map (k => parseInt (kernel.colour.slice (k, k + 2), 16)));

function beginThin (scene, ratio) {
  const width = Math.max (1, Math.ceil ((scene.place.right - scene.place.left) * ratio) + 2);
  const height = Math.max (1, scene.place.shown.length * LEVELS);
  if (!thin.image || thin.image.width !== width || thin.image.height < height) {
    thin.c.canvas.width = width;
    thin.c.canvas.height = height;
    thin.image = thin.c.createImageData (width, height);
    thin.covered = new Float32Array (width);
    thin.longest = new Int32Array (width);
    thin.took = new Float32Array (width);
    thin.bright = new Uint8Array (width);
  }
  thin.image.data.fill (0);
  thin.ratio = ratio;
  thin.rows = [];
}

function endThin (scene) {
  const { c, place: p } = scene;
  const width = thin.image.width;
  thin.c.putImageData (thin.image, 0, 0);
  c.globalAlpha = 1;
  c.imageSmoothingEnabled = false;
  thin.rows.forEach (([top, height], k) =>
    c.drawImage (thin.c.canvas, 0, k * LEVELS, width, LEVELS, p.left, top, width / thin.ratio, height));
}

// What ran in a column of the row takes that share of it, from the ground up; a shade says that
// there was something at all.
function fillColumn (column, isBright) {
  const bytes = thin.image.data;
  const width = thin.image.width;
  const colour = rgb[kernelOf[thin.longest[column]]];
  const level = Math.min (1, thin.covered[column]) * LEVELS;
  const ground = (thin.rows.length + 1) * LEVELS - 1;
  for (let k = 0; k < LEVELS; k++) {
    const at = 4 * ((ground - k) * width + column);
    const part = Math.max (k === 0 ? 0.5 : 0.12, Math.min (1, level - k));
    bytes[at] = colour[0];
    bytes[at + 1] = colour[1];
    bytes[at + 2] = colour[2];
    bytes[at + 3] = 255 * (isBright ? 1 : DIM) * part;
  }
}

// Half a bar: what is sent above, what comes back below.
function drawTransfers (scene, r, top, height) {
  const { c, t0, t1, place: { left, right } } = scene;
  const half = (height - 1) / 2;
  const drawn = [-1, -1];
  for (let k = firstTransfer[r]; k < firstTransfer[r + 1] && transfers.start[k] < t1; k++) {
    const until = transfers.start[k] + transfers.length[k];
    const back = transfers.is_back[k];
    if (until < t0 || transfers.bytes[k] === 0)
      continue;
    const a = Math.max (scene.x (transfers.start[k]), left);
    const b = Math.min (scene.x (until), right);
    // Of several in one pixel one is seen.
    if (b - a < 1 && Math.floor (a) === drawn[back])
      continue;
    drawn[back] = Math.floor (a);
    c.globalAlpha = hits === null && related === null || transfers.entry[k] >= 0 && isBright (transfers.entry[k]) ? 1 : DIM;
    fillBox (c, back ? scene.ink.received : scene.ink.sent, a, top + (back ? half + 1 : 0), Math.max (b - a, 1), half);
  }
  c.globalAlpha = 1;
}

// The one under the pointer, where nothing runs; -1: none.
function transferAt (x, y) {
  const r = rowAt (y);
  if (r < 0 || x < place.left || x > place.right)
    return -1;
  const t = timeAt (x);
  const slack = 3 / (place.right - place.left) * (view.t1 - view.t0);
  const isBelow = y - place.top + view.scroll - place.y.get (r) > place.h.get (r) / 2;
  let best = -1;
  for (let k = firstTransfer[r]; k < firstTransfer[r + 1] && transfers.start[k] <= t + slack; k++)
    if (transfers.bytes[k] > 0 && transfers.start[k] + transfers.length[k] >= t - slack && !!transfers.is_back[k] === isBelow)
      best = k;
  return best;
}

function drawRow (scene, r, y, h) {
  const { c, t0, t1, place: { left, right } } = scene;
  const list = runs[r];
  const top = y + (h > 14 ? 1.5 : 1);
  const height = h - (h > 14 ? 3 : 2);
  const size = Math.max (8.5, Math.min (11.5, h - 7));
  const labels = [];
  const { ratio, covered, longest, took, bright } = thin;
  // Columns from the one on are being filled, up to the other.
  let first = 0, last = -1;

  function flush (until) {
    for (; first <= last && first < until; first++)
      fillColumn (first, bright[first] > 0);
  }

  drawTransfers (scene, r, top, height);
  const isPlain = hits === null && related === null;
  const { scale } = scene;
  const zero = left - t0 * scale;
  for (let k = above (latest[r], t0); k < list.length; k++) {
    const i = list[k];
    if (start[i] >= t1)
      break;
    const a = Math.max (start[i] * scale + zero, left);
    const b = Math.min (end[i] * scale + zero, right);
    const light = isPlain || isBright (i) ? 1 : 0;
    if (b - a < NARROW) {
      const from = (a - left) * ratio;
      const to = (b - left) * ratio;
      const begin = Math.floor (from);
      const finish = Math.max (begin, Math.ceil (to) - 1);
      if (begin > last) {
        flush (begin);
        first = begin;
      }
      for (let column = begin; column <= finish; column++) {
        if (column > last) {
          last = column;
          covered[column] = 0;
          took[column] = -1;
          bright[column] = 0;
        }
        const part = Math.max (0, Math.min (to, column + 1) - Math.max (from, column));
        covered[column] += part;
        if (light > bright[column] || light === bright[column] && part > took[column]) {
          longest[column] = i;
          took[column] = part;
          bright[column] = light;
        }
      }
      continue;
    }
    c.globalAlpha = light ? 1 : DIM;
    fillBox (c, fillOf (scene, i, b - a), a, top, b - a > 3 ? b - a - 0.6 : b - a, height);
    if (flags[i] & 1)
      markFailed (scene, a, top, b - a, height);
    if (b - a > 18 && h >= 11 && light > 0)
      labels.push (i, a, b);
  }
  flush (Infinity);
  thin.rows.push ([top, height]);
  drawLabels (scene, labels, top + height / 2, size);
  c.globalAlpha = 1;
}

// A kernel beyond the first colours has a hatching, too, where it can be seen.
const hatchings = new Map ();
function fillOf (scene, entry, width) {
  const k = kernelOf[entry];
  const kernel = kernels[k];
  if (k < 8 || width < 7 || !kernel.hatching)
    return kernel.colour;
  if (!hatchings.has (k)) {
    const cell = make ("canvas", { width: 6, height: 6 });
    const c = cell.getContext ("2d");
    fillBox (c, kernel.colour, 0, 0, 6, 6);
    c.strokeStyle = "rgba(23,50,74,.45)";
    c.lineWidth = 0.9;
    c.stroke (new Path2D (kernel.hatching));
    hatchings.set (k, scene.c.createPattern (cell, "repeat"));
  }
  return hatchings.get (k);
}

const widths = new Map ();
function textWidth (c, text) {
  const key = c.font + text;
  if (!widths.has (key)) {
    if (widths.size > 20000)
      widths.clear ();
    widths.set (key, c.measureText (text).width);
  }
  return widths.get (key);
}

// As much of the name as there is room for, if that says anything.
function shorten (c, name, width) {
  const letters = Math.floor (width / textWidth (c, "n"));
  return letters < 5 ? "" : name.slice (0, letters - 1) + "\u2026";
}

function drawLabels (scene, labels, middle, size) {
  const { c } = scene;
  const font = `500 ${size}px`;
  c.font = `${font} ${FONT}`;
  c.globalAlpha = 1;
  for (let k = 0; k < labels.length; k += 3) {
    const [i, a, b] = [labels[k], labels[k + 1], labels[k + 2]];
    const name = kernels[kernelOf[i]].name;
    let text = taskName (i);
    if (textWidth (c, text) + 8 > b - a)
      text = textWidth (c, name) + 6 <= b - a ? name : shorten (c, name, b - a - 8);
    if (text)
      write (c, text, (a + b) / 2, middle + 0.5, font, "#101820", "center");
  }
}

function markFailed (scene, x, y, w, h) {
  const { c } = scene;
  c.save ();
  c.strokeStyle = scene.ink.ink;
  c.lineWidth = 2;
  c.setLineDash ([3, 2]);
  c.strokeRect (x + 1, y + 1, Math.max (w - 2, 0.5), h - 2);
  c.restore ();
}

// The rows' names, on the left, with how busy each was.
function drawNames (scene) {
  const { c, place: p } = scene;
  const isNarrow = p.left < 120;
  let cluster = null;
  for (const r of p.shown) {
    const row = rows[r];
    const y = p.top - scene.scroll + p.y.get (r);
    const h = p.h.get (r);
    const middle = y + h / 2 + 0.5;
    const size = Math.max (8, Math.min (11.5, h - 3));
    if (y + h < p.top || y > p.bottom)
      continue;
    const x = 14 + (data.is_level ? row.depth * 10 : 0);
    if (!data.is_level && row.depth === 0 && !isNarrow && cluster !== row.cluster) {
      cluster = row.cluster;
      write (c, `${row.cluster}`, 14, middle, "9.5px", scene.ink.faint);
    }
    if (row.depth === 0 && !isNarrow) {
      const share = data.elapsed > 0 ? Math.min (row.busy / data.elapsed, 1) : 0;
      fillBox (c, scene.ink.grid, p.left - 66, y + h / 2 - 1.5, 26, 3);
      fillBox (c, scene.ink.muted, p.left - 66, y + h / 2 - 1.5, 26 * share, 3);
      write (c, Math.round (100 * share) + THIN + "%", p.left - 8, middle, `${Math.min (size, 10)}px`, scene.ink.muted, "right");
    }
    const font = `${row.depth === 0 ? 500 : 400} ${size}px`;
    const colour = row.depth === 0 ? scene.ink.ink : scene.ink.muted;
    if (children[r].length > 0)
      write (c, collapsed.has (r) ? "\u25b8" : "\u25be", x - 10, middle, font, colour);
    const left = data.is_level || isNarrow ? x + 2 : 32;
    write (c, row.name, left, middle, font, colour, "left", p.left - left - (row.depth === 0 && !isNarrow ? 70 : 6));
  }
}

// Which rows are not there.
function drawFold (scene) {
  const { c, place: p } = scene;
  if (isNaN (p.fold))
    return;
  const y = p.top - scene.scroll + p.fold;
  fillBox (c, scene.ink.paper, 0, y, p.right, FOLD);
  c.strokeStyle = scene.ink.line;
  c.lineWidth = 1;
  c.setLineDash ([4, 3]);
  c.strokeRect (6.5, Math.round (y) + 0.5, p.right - 7, FOLD - 1);
  c.setLineDash ([]);
  write (c, (isIdleShown ? "\u25be " : "\u25b8 ") + foldText (), 14, y + FOLD / 2 + 0.5, "10.5px", scene.ink.muted);
}

function drawBands (scene) {
  const { c, place: p } = scene;
  let from = 0;
  let number = 0;
  p.shown.forEach ((r, k) => {
    const isLast = k + 1 === p.shown.length;
    if (!isLast && !isNewCluster (p.shown, k + 1))
      return;
    const a = p.y.get (p.shown[from]);
    const b = p.y.get (r) + p.h.get (r);
    if (number++ % 2 === 0)
      fillBox (c, scene.ink.band, 0, p.top - scene.scroll + a - CLUSTER_GAP / 2, p.width, b - a + CLUSTER_GAP);
    from = k + 1;
  });
}

function niceStep (range, wanted) {
  const rough = range / wanted;
  const decade = 10 ** Math.floor (Math.log10 (rough));
  for (const factor of [1, 2, 5])
    if (rough <= factor * decade)
      return Math.max (1, factor * decade);
  return Math.max (1, 10 * decade);
}

function drawAxis (scene) {
  const { c, place: p } = scene;
  const step = niceStep (scene.t1 - scene.t0, (p.right - p.left) / 110);
  const [factor, unit] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 || scene.t1 >= 1e5 ? [1e3, "\u00b5s"] : [1, "ns"];
  const digits = Math.max (0, Math.ceil (-Math.log10 (step / factor) - 1e-9));
  c.font = `10.5px ${FONT}`;
  for (let k = Math.ceil (scene.t0 / step); k * step <= scene.t1; k++) {
    const x = Math.round (scene.x (k * step)) + 0.5;
    const [whole, rest] = (k * step / factor).toFixed (digits).split (".");
    c.strokeStyle = scene.ink.grid;
    c.lineWidth = 1;
    c.beginPath ();
    c.moveTo (x, p.axis + AXIS - 3);
    c.lineTo (x, p.stripBottom);
    c.stroke ();
    const text = group (whole) + (rest ? "." + rest : "") + (k * step === 0 ? "" : THIN + unit);
    const half = textWidth (c, text) / 2;
    write (c, text, Math.min (Math.max (x, p.left + half - 8), p.right - half + 12), p.axis + AXIS / 2 + 1, "10.5px",
      scene.ink.muted, "center");
  }
}

// Moments as ticks; those that share a pixel are one.
function drawTicks (scene, times, y, h, colour) {
  const { c } = scene;
  c.fillStyle = colour;
  for (let k = above (times, scene.t0 - 1e-6); k < times.length && times[k] <= scene.t1;) {
    const x = Math.floor (scene.x (times[k]));
    c.fillRect (x, y, 1, h);
    k = Math.max (k + 1, above (times, scene.t0 + (x + 1 - scene.place.left) / scene.scale - 1e-6));
  }
}

const moments = { submits: [], dispatches: [], completes: [] };
{
  const root = sections[0];
  for (let s = 0; s < data.schedulers; s++) {
    moments.dispatches.push ([]);
    moments.completes.push ([]);
  }
  for (let i = 0; i < root.entries; i++) {
    if (i < root.tasks && !isNaN (submit[i]))
      moments.submits.push (submit[i]);
    if (schedulerOf[i] < 0)
      continue;
    if (!(flags[i] & 2) && !isNaN (dispatch[i]))
      moments.dispatches[schedulerOf[i]].push (dispatch[i]);
    if (i < root.tasks && !isNaN (complete[i]))
      moments.completes[schedulerOf[i]].push (complete[i]);
  }
  const sorted = list => Float64Array.from (list).sort ();
  moments.submits = sorted (moments.submits);
  moments.dispatches = moments.dispatches.map (sorted);
  moments.completes = moments.completes.map (sorted);
}

function drawControl (scene) {
  const { c, place: p } = scene;
  for (let k = 0; k < p.nControl; k++) {
    const y = p.control + k * p.tick;
    write (c, k === 0 ? "orchestrator" : "scheduler " + (k - 1), 14, y + p.tick / 2 + 0.5, `${p.tick < 12 ? 8 : 10}px`,
      scene.ink.muted, "left", p.left - 24);
    if (k === 0) {
      c.fillStyle = scene.ink.stall;
      for (const stall of data.stalls) {
        const a = Math.max (scene.x (stall.start), p.left);
        const b = Math.min (scene.x (stall.end), p.right);
        if (b >= p.left && a <= p.right)
          c.fillRect (a, y + 1, Math.max (b - a, 1), p.tick - 3);
      }
      drawTicks (scene, moments.submits, y + 3, p.tick - 7, scene.ink.ink);
    } else {
      drawTicks (scene, moments.dispatches[k - 1], y + 1.5, p.tick / 2 - 2, scene.ink.muted);
      drawTicks (scene, moments.completes[k - 1], y + p.tick / 2, p.tick / 2 - 2, scene.ink.faint);
    }
  }
}

// The outline of a step chart, highest value first where steps share a pixel.
function traceSteps (scene, series, y, h, most) {
  const { c, place: p } = scene;
  const { times, values } = series;
  let k = Math.max (above (times, scene.t0) - 1, 0);
  let value = valueAt (series, scene.t0);
  const level = v => y + h - (most > 0 ? v / most : 0) * h;
  c.moveTo (p.left, y + h);
  c.lineTo (p.left, level (value));
  while (k < times.length && times[k] <= scene.t1) {
    const x = Math.max (p.left, scene.x (times[k]));
    let high = values[k];
    let last = values[k];
    for (k++; k < times.length && scene.x (times[k]) < Math.floor (x) + 1; k++) {
      high = Math.max (high, values[k]);
      last = values[k];
    }
    c.lineTo (x, level (value));
    c.lineTo (x, level (high));
    if (last !== high)
      c.lineTo (x, level (last));
    value = last;
  }
  c.lineTo (p.right, level (value));
}

function formatValue (series, value) {
  return series.unit === "bytes" && value >= 1024 ? amount (value) : group (value);
}

function drawStrips (scene) {
  const { c, place: p } = scene;
  strips.forEach ((strip, s) => {
    const y = p.stripTop + s * (p.strip + STRIP_GAP);
    const colourOf = k => scene.ink["series" + (k % 4 + 1)];
    fillBox (c, scene.ink.band, p.left, y, p.right - p.left, p.strip);
    inside (c, p.left, y - 1, p.right - p.left, p.strip + 2, () => {
      const order = strip.isStacked ? [...strip.series].reverse () : strip.series;
      for (const series of order) {
        const k = strip.series.indexOf (series);
        c.beginPath ();
        traceSteps (scene, series.top || series, y, p.strip, strip.most);
        c.strokeStyle = c.fillStyle = colourOf (k);
        c.lineWidth = 1.2;
        c.setLineDash (!strip.isStacked && k > 0 ? [4, 2] : []);
        c.stroke ();
        c.setLineDash ([]);
        c.lineTo (p.right, y + p.strip);
        c.closePath ();
        c.globalAlpha = strip.isStacked ? 1 : k > 0 ? 0.1 : 0.25;
        c.fill ();
        c.globalAlpha = 1;
      }
    });
    const most = "most " + formatValue (strip.series[0], strip.most);
    write (c, stripNames[strip.kind] || strip.kind, 14, y + 7, "500 10.5px", scene.ink.ink, "left", p.left - 24);
    write (c, most, 14, y + 19, "9.5px", scene.ink.muted, "left", p.left - 24);
    if (strip.series.length > 1) {
      const isLow = p.strip < 34;
      let x = isLow ? 26 + textWidth (c, most) : 14;
      for (let k = 0; k < strip.series.length && x < p.left - 30; k++) {
        const name = strip.series[k].name.replace ("ring ", "");
        fillBox (c, colourOf (k), x, y + (isLow ? 15 : 27), 7, 7);
        write (c, name, x + 10, y + (isLow ? 19 : 31), "9.5px", scene.ink.muted);
        x += 18 + textWidth (c, name);
      }
    }
  });
}

// How many cores were busy with what, over the whole run.
const BINS = 600;
const overview = makeOverview ();
function makeOverview () {
  const bins = kernels.map (() => null);
  const width = span / BINS;
  rows.forEach ((row, r) => {
    if (row.depth > 0)
      return;
    for (const i of runs[r]) {
      const k = kernelOf[i];
      const into = bins[k] || (bins[k] = new Float64Array (BINS));
      for (let b = Math.floor (start[i] / width); b < BINS && b * width < end[i]; b++)
        into[b] += Math.max (0, Math.min (end[i], (b + 1) * width) - Math.max (start[i], b * width)) / width;
    }
  });
  return bins;
}
const peak = Math.max (1e-3, ...Array.from ({ length: BINS }, (_, b) => overview.reduce ((sum, bins) => sum + (bins ? bins[b] : 0), 0)));

function drawOverview (scene, shown) {
  const { c, place: p } = scene;
  const y = 6;
  const h = OVERVIEW - 10;
  const w = (p.right - p.left) / BINS;
  // Full is what could have been: all cores that ran anything were busy.
  const most = Math.max (peak, rows.filter ((row, r) => row.depth === 0 && runs[r].length > 0).length) * 1.08;
  fillBox (c, scene.ink.band, p.left, y, p.right - p.left, h);
  const base = new Float64Array (BINS);
  overview.forEach ((bins, k) => {
    if (!bins)
      return;
    c.fillStyle = kernels[k].colour;
    c.beginPath ();
    c.moveTo (p.left, y + h - base[0] / most * h);
    for (let b = 0; b < BINS; b++) {
      const top = y + h - (base[b] + bins[b]) / most * h;
      c.lineTo (p.left + b * w, top);
      c.lineTo (p.left + (b + 1) * w, top);
    }
    for (let b = BINS - 1; b >= 0; b--) {
      const bottom = y + h - base[b] / most * h;
      c.lineTo (p.left + (b + 1) * w, bottom);
      c.lineTo (p.left + b * w, bottom);
    }
    c.fill ();
    for (let b = 0; b < BINS; b++)
      base[b] += bins[b];
  });
  write (c, data.is_level ? "busy workers" : "busy cores", 14, y + 10, "500 10.5px", scene.ink.ink, "left", p.left - 24);
  write (c, "most " + (peak < 10 ? peak.toFixed (1) : Math.round (peak)) + " of " + rows.filter (row => row.depth === 0).length,
    14, y + 23, "9.5px", scene.ink.muted, "left", p.left - 24);
  if (!shown)
    return;
  const a = p.left + Math.max (0, shown.t0 / span) * (p.right - p.left);
  const b = p.left + Math.min (1, shown.t1 / span) * (p.right - p.left);
  c.globalAlpha = 0.72;
  fillBox (c, scene.ink.paper, p.left, y, a - p.left, h);
  fillBox (c, scene.ink.paper, b, y, p.right - b, h);
  c.globalAlpha = 1;
  c.strokeStyle = scene.ink.accent;
  c.lineWidth = 1.5;
  c.strokeRect (a + 0.5, y, Math.max (b - a - 1, 2), h);
}

// An arrow from the end of one to the beginning of another.
function drawArrow (scene, from, to, colour, width) {
  const { c } = scene;
  const y0 = rowMiddle (scene, rowOf[from]);
  const y1 = rowMiddle (scene, rowOf[to]);
  const x0 = scene.x (end[from]);
  const x1 = scene.x (start[to]);
  if (isNaN (y0 + y1 + x0 + x1))
    return;
  const bend = Math.max (14, Math.min (90, Math.abs (x1 - x0) / 2));
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = width;
  c.beginPath ();
  c.moveTo (x0, y0);
  c.bezierCurveTo (x0 + bend, y0, x1 - bend, y1, x1 - 3, y1);
  c.stroke ();
  c.beginPath ();
  c.moveTo (x1, y1);
  c.lineTo (x1 - 6 - width, y1 - 3 - width / 2);
  c.lineTo (x1 - 6 - width, y1 + 3 + width / 2);
  c.fill ();
  c.beginPath ();
  c.arc (x0, y0, 1.5 + width / 2, 0, 7);
  c.fill ();
}

function outline (scene, entry, colour, width) {
  const { c, place: p } = scene;
  const r = standIn (rowOf[entry]);
  if (r < 0 || isNaN (start[entry]))
    return;
  const a = Math.max (scene.x (start[entry]), p.left - 3);
  const b = Math.min (scene.x (end[entry]), p.right + 3);
  if (b < p.left || a > p.right)
    return;
  const y = p.top - scene.scroll + p.y.get (r);
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.strokeRect (a - 0.5, y + 1, Math.max (b - a, 1.5) + 0.5, p.h.get (r) - 2);
}

function drawCritical (scene) {
  const { c, place: p } = scene;
  const last = { x: -1, y: -1 };
  c.strokeStyle = scene.ink.critical;
  c.fillStyle = scene.ink.critical;
  c.globalAlpha = selected >= 0 || hits !== null ? 0.45 : 1;
  for (let k = 0; k < critical.length; k++) {
    const i = critical[k];
    const x = scene.x (start[i]);
    const y = rowMiddle (scene, rowOf[i]);
    if (start[i] > scene.t1)
      break;
    if (k > 0 && end[i] >= scene.t0 && (Math.abs (x - last.x) > 1 || Math.abs (y - last.y) > 1)) {
      c.lineWidth = 1;
      c.beginPath ();
      c.moveTo (scene.x (end[critical[k - 1]]), rowMiddle (scene, rowOf[critical[k - 1]]));
      c.lineTo (x, y);
      c.stroke ();
    }
    last.x = x;
    last.y = y;
    if (end[i] < scene.t0)
      continue;
    const w = scene.x (end[i]) - x;
    if (w < 3) {
      const r = standIn (rowOf[i]);
      c.fillRect (x, p.top - scene.scroll + p.y.get (r) + p.h.get (r) - 3, Math.max (w, 1), 2);
    } else
      outline (scene, i, scene.ink.critical, 1.6);
  }
  c.globalAlpha = 1;
}

function drawSelection (scene) {
  const task = owner[selected];
  const late = lastProducer (task);
  const out = edgesFrom (task).slice (0, 400);
  for (const e of out)
    drawArrow (scene, selected, consumer[e], scene.ink.muted, 1);
  for (const e of edgesInto (task).slice (0, 400))
    if (producer[e] >= 0 && producer[e] !== late)
      drawArrow (scene, producer[e], selected, scene.ink.accent, 1);
  if (late >= 0) {
    drawArrow (scene, late, selected, scene.ink.late, 2.2);
    outline (scene, late, scene.ink.late, 2);
  }
  for (const member of membersOf.get (task) || [])
    outline (scene, member, scene.ink.ink, 1);
  if (isMember[selected])
    outline (scene, task, scene.ink.ink, 1);
  outline (scene, selected, scene.ink.ink, 2.4);
}

function paint (scene, isPrinted) {
  const { c, place: p } = scene;
  const [top, height] = [p.top - 3, p.bottom - p.top + 6];
  c.globalAlpha = 1;
  fillBox (c, scene.ink.paper, 0, 0, p.width, p.height);
  drawOverview (scene, isPrinted ? null : view);
  inside (c, 0, top, p.width, height, () => drawBands (scene));
  drawAxis (scene);
  drawControl (scene);
  inside (c, 0, top, p.width, height, () => {
    drawNames (scene);
    drawFold (scene);
  });
  inside (c, p.left, top, p.right - p.left, height, () => {
    beginThin (scene, isPrinted ? 2 : window.devicePixelRatio || 1);
    for (const r of p.shown) {
      const y = p.top - scene.scroll + p.y.get (r);
      if (y + p.h.get (r) >= p.top && y <= p.bottom)
        drawRow (scene, r, y, p.h.get (r));
    }
    endThin (scene);
    if (isCriticalShown)
      drawCritical (scene);
    if (selected >= 0 && !isPrinted)
      drawSelection (scene);
  });
  drawStrips (scene);
}

let isDue = false;
function draw () {
  if (isDue)
    return;
  isDue = true;
  requestAnimationFrame (() => {
    isDue = false;
    render ();
  });
}

function render () {
  const box = $ ("stage").getBoundingClientRect ();
  const ratio = window.devicePixelRatio || 1;
  if (canvas.hidden || box.width < 10)
    return;
  const width = Math.floor (box.width);
  const height = Math.floor (box.height);
  for (const each of [canvas, over])
    if (each.width !== Math.round (width * ratio) || each.height !== Math.round (height * ratio)) {
      each.width = Math.round (width * ratio);
      each.height = Math.round (height * ratio);
    }
  place = arrange (width, height, 11);
  view.scroll = Math.max (0, Math.min (view.scroll, place.content - (place.bottom - place.top) + 4));
  if (place.content <= place.bottom - place.top)
    view.scroll = 0;
  const scene = currentScene ();
  scene.c.setTransform (ratio, 0, 0, ratio, 0, 0);
  paint (scene, false);
  if (place.content > place.bottom - place.top + 1) {
    const track = place.bottom - place.top;
    scene.c.globalAlpha = 0.5;
    fillBox (scene.c, ink.faint, width - 7, place.top + view.scroll / place.content * track, 4, track / place.content * track);
    scene.c.globalAlpha = 1;
  }
  drawOver ();
}

// What follows the pointer.
function drawOver () {
  const c = over.getContext ("2d");
  const ratio = window.devicePixelRatio || 1;
  c.setTransform (ratio, 0, 0, ratio, 0, 0);
  c.clearRect (0, 0, over.width, over.height);
  if (!place || !pointer || pointer.x < place.left || pointer.x > place.right)
    return;
  const bottom = place.stripBottom;
  if (pointer.y < place.axis || pointer.y > bottom)
    return;
  const t = timeAt (pointer.x);
  c.strokeStyle = ink.muted;
  c.lineWidth = 1;
  c.setLineDash ([2, 3]);
  c.beginPath ();
  c.moveTo (Math.round (pointer.x) + 0.5, place.axis + AXIS);
  c.lineTo (Math.round (pointer.x) + 0.5, bottom);
  c.stroke ();
  c.setLineDash ([]);
  drawFlag (c, pointer.x, place.axis + AXIS / 2 + 1, [moment (Math.max (0, t))]);
  strips.forEach ((strip, s) => {
    const y = place.stripTop + s * (place.strip + STRIP_GAP) + place.strip / 2;
    const isOne = strip.series.length === 1;
    drawFlag (c, pointer.x, y, strip.series.map (series =>
      (isOne ? "" : series.name + " ") + formatValue (series, valueAt (series, t))), true);
  });
  if (hovered >= 0)
    outline ({ ...currentScene (), c }, hovered, ink.ink, 1.4);
}

function drawFlag (c, x, y, texts, isBeside) {
  const text = texts.join ("   ");
  c.font = `500 10.5px ${FONT}`;
  const w = textWidth (c, text) + 12;
  let left = isBeside ? x + 7 : x - w / 2;
  if (isBeside && left + w > place.right)
    left = x - 7 - w;
  left = Math.max (2, Math.min (left, place.width - w - 2));
  c.fillStyle = ink.ink;
  c.globalAlpha = 0.92;
  c.beginPath ();
  c.roundRect (left, y - 8.5, w, 17, 4);
  c.fill ();
  c.globalAlpha = 1;
  write (c, text, left + 6, y + 0.5, "500 10.5px", ink.paper);
}

// --- moving ---

const isStill = matchMedia ("(prefers-reduced-motion: reduce)");
let motion = null;

function clampView (t0, t1) {
  const least = Math.max (20, span / 1e7);
  let width = Math.max (least, Math.min (t1 - t0, span * 1.02));
  let from = (t0 + t1) / 2 - width / 2;
  from = Math.max (-0.02 * width, Math.min (from, span + 0.02 * width - width));
  if (width >= span) {
    from = 0;
    width = span;
  }
  return [from, from + width];
}

function setView (t0, t1) {
  motion = null;
  [view.t0, view.t1] = clampView (t0, t1);
  draw ();
}

// The same, in a moment that one can follow.
function glideTo (t0, t1) {
  const [a, b] = clampView (t0, t1);
  if (isStill.matches) {
    setView (a, b);
    return;
  }
  const own = motion = { a0: view.t0, b0: view.t1, since: performance.now () };
  const step = now => {
    if (motion !== own)
      return;
    const part = Math.min (1, Math.max (0, now - own.since) / 180);
    const ease = 1 - (1 - part) ** 3;
    view.t0 = own.a0 + (a - own.a0) * ease;
    view.t1 = own.b0 + (b - own.b0) * ease;
    if (part < 1)
      requestAnimationFrame (step);
    else
      motion = null;
    draw ();
  };
  requestAnimationFrame (step);
}

function zoom (factor, at) {
  const middle = at === undefined ? (view.t0 + view.t1) / 2 : at;
  const width = view.t1 - view.t0;
  const wanted = Math.max (20, Math.min (width * factor, span));
  const part = (middle - view.t0) / width;
  (at === undefined ? glideTo : setView) (middle - part * wanted, middle - part * wanted + wanted);
}

function move (share) {
  const by = share * (view.t1 - view.t0);
  setView (view.t0 + by, view.t1 + by);
}

function scrollBy (pixels) {
  view.scroll += pixels;
  draw ();
}

function showAll () {
  glideTo (0, span);
}

function showEntry (entry) {
  if (isNaN (start[entry]))
    return;
  const took = Math.max (end[entry] - start[entry], 1);
  glideTo (start[entry] - 4 * took, end[entry] + 4 * took);
  reveal (entry);
}

// Moves only as far as it takes.
function reveal (entry) {
  for (let up = rowOf[entry] >= 0 ? rows[rowOf[entry]].parent : -1; up >= 0; up = rows[up].parent)
    collapsed.delete (up);
  if (rowOf[entry] >= 0 && place) {
    place = arrange (place.width, place.height, 11);
    const y = place.y.get (rowOf[entry]);
    const room = place.bottom - place.top;
    if (y < view.scroll)
      view.scroll = y - 8;
    else if (y + place.h.get (rowOf[entry]) > view.scroll + room)
      view.scroll = y + place.h.get (rowOf[entry]) - room + 8;
  }
  const at = isNaN (start[entry]) ? submit[entry] : start[entry];
  const until = isNaN (end[entry]) ? at : end[entry];
  const width = view.t1 - view.t0;
  if (!isNaN (at) && (until < view.t0 + 0.03 * width || at > view.t1 - 0.03 * width)) {
    const middle = (at + until) / 2;
    glideTo (middle - width / 2, middle + width / 2);
  }
  draw ();
}
