// data.js: what do the numbers of the page mean?
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An entry is a task, or one more core that the same task ran on. Times are nanoseconds since the
// first record; NaN: never recorded. Entries, rows, kernels and sections are named by their position.

const $ = id => document.getElementById (id);

const data = JSON.parse ($ ("data").textContent);
$ ("data").remove ();

const TIMES = ["submit", "submitted", "ready", "dispatch", "ack", "start", "end", "complete", "retire"];
const HAZARDS = [[1, "RAW"], [2, "WAW"], [4, "WAR"], [16, "explicit"], [8, "assumed"]];

const n = data.tasks.n;
const kernels = data.kernels;
const rows = data.rows;
const sections = data.sections;
const ring = Uint8Array.from (data.tasks.ring);
const kernelOf = Uint32Array.from (data.tasks.kernel);
const rowOf = Int32Array.from (data.tasks.row);
const schedulerOf = Int32Array.from (data.tasks.scheduler);
const flags = Uint8Array.from (data.tasks.flags);
const priority = data.tasks.priority ?? null;
const block = data.tasks.block ? Int32Array.from (data.tasks.block) : null;
const local = sumUp (data.tasks.local);
const time = decodeTimes ();
const { submit, ready, dispatch, start, end, complete, retire } = time;

function sumUp (differences) {
  const sums = new Float64Array (differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i++)
    sums[i] = sum += differences[i];
  return sums;
}

// Where the items of each key begin, of a list that is sorted by key; those below 0 are none.
function firstOf (nKeys, keys) {
  const first = new Uint32Array (nKeys + 1);
  for (const key of keys)
    if (key >= 0)
      first[key + 1]++;
  for (let k = 0; k < nKeys; k++)
    first[k + 1] += first[k];
  return first;
}

// Each counts from the one before it of the same task, the first one from the last submit.
function decodeTimes () {
  const base = new Float64Array (n);
  const decoded = {};
  let last = 0;
  for (const name of TIMES) {
    const column = data.tasks[name];
    const values = decoded[name] = new Float64Array (n);
    for (let i = 0; i < n; i++) {
      if (name === "submit")
        base[i] = last;
      if (column[i] === null) {
        values[i] = NaN;
        continue;
      }
      values[i] = base[i] += column[i];
      if (name === "submit")
        last = base[i];
    }
    delete data.tasks[name];
  }
  return decoded;
}

// Of each entry: the run that it is of, and the task itself where it is a member of one.
const sectionOf = new Uint32Array (n);
const owner = new Uint32Array (n);
const isMember = new Uint8Array (n);
const membersOf = new Map ();
for (let i = 0; i < n; i++)
  owner[i] = i;
sections.forEach ((section, s) => sectionOf.fill (s, section.first, section.first + section.entries));
data.member_task.forEach ((task, k) => {
  const first = data.member_first[k];
  const list = [];
  for (let i = first; i < first + data.member_n[k]; i++) {
    owner[i] = task;
    isMember[i] = 1;
    list.push (i);
  }
  membersOf.set (task, list);
});
// What ran inside of a task.
const insideOf = new Map ();
sections.forEach ((section, s) => {
  if (section.task >= 0)
    insideOf.set (section.task, s);
});

// --- edges, by consumer as they come, and by producer ---

const nEdges = data.edges.n;
const consumer = Uint32Array.from (sumUp (data.edges.consumer));
const producer = new Int32Array (nEdges);
const hazards = Uint8Array.from (data.edges.kinds);
const gone = new Map ();
for (let e = 0, g = 0; e < nEdges; e++) {
  const back = data.edges.producer[e];
  producer[e] = back === null ? -1 : consumer[e] - back;
  if (back === null)
    gone.set (e, data.edges.gone[g++]);
}
const firstIn = firstOf (n, consumer);
const firstOut = firstOf (n, producer);
const edgesOut = new Uint32Array (nEdges);
{
  const next = firstOut.slice ();
  for (let e = 0; e < nEdges; e++)
    if (producer[e] >= 0)
      edgesOut[next[producer[e]]++] = e;
}

function edgesInto (task) {
  const list = [];
  for (let e = firstIn[task]; e < firstIn[task + 1]; e++)
    list.push (e);
  return list;
}

function edgesFrom (task) {
  return Array.from (edgesOut.subarray (firstOut[task], firstOut[task + 1]));
}

function hazardNames (kinds) {
  return HAZARDS.filter (([bit]) => kinds & bit).map (([, name]) => name).join (" ");
}

// When a producer no longer held anybody up.
function doneAt (task) {
  return isNaN (complete[task]) ? end[task] : complete[task];
}

// The producer without which the task would have been ready earlier; -1: it waited for none.
function lastProducer (task) {
  return data.tasks.last[task] === null ? -1 : task - data.tasks.last[task];
}

// --- rows ---

// Per row: what ran there, by start, and up to each the latest end so far.
const runs = rows.map (() => []);
for (let i = 0; i < n; i++)
  if (rowOf[i] >= 0)
    runs[rowOf[i]].push (i);
const latest = runs.map ((list, r) => {
  list.sort ((a, b) => start[a] - start[b] || end[a] - end[b] || a - b);
  const sorted = runs[r] = Uint32Array.from (list);
  const ends = new Float64Array (list.length);
  for (let k = 0, last = -Infinity; k < ends.length; k++)
    ends[k] = last = Math.max (last, end[sorted[k]]);
  return ends;
});
const children = rows.map (() => []);
rows.forEach ((row, r) => {
  if (row.parent >= 0)
    children[row.parent].push (r);
});

// The first position whose value is above a limit; values ascend.
function above (values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (values[middle] > limit)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

function positionInRow (entry) {
  return runs[rowOf[entry]].indexOf (entry);
}

// --- what a task waited for ---

// While it ran: for other kernels, at a barrier or a pipe.
function waitedIn (entry) {
  return data.tasks.waited ? data.tasks.waited[entry] : 0;
}

// From its submit to its start: for data, until the last producer was over; for a core, as long as
// none of its kind was free; and for the scheduler the rest. NaN: not known.
function waitsOf (entry) {
  const known = value => value === null ? NaN : value;
  const { wait_data: forData, wait_core: forCore, wait_scheduler: forScheduler } = data.tasks;
  return {
    data: known (forData[entry]),
    core: known (forCore[entry]),
    scheduler: known (forScheduler[entry]),
    run: end[entry] - start[entry] - waitedIn (entry),
    others: waitedIn (entry) || NaN,
    notice: complete[entry] - end[entry],
    slot: retire[entry] - complete[entry]
  };
}

// "FILE:LINE", or nothing.
function sourceOf (columns, k) {
  return columns.file && columns.file[k] >= 0 ? data.files[columns.file[k]] + ":" + columns.line[k] : "";
}

// The innermost scope that was open when a task of the outermost run was submitted; -1: none.
const scopeStart = sumUp (data.scopes.start);
function scopeOf (task) {
  let k = sectionOf[task] === 0 && !isNaN (submit[task]) ? above (scopeStart, submit[task]) - 1 : -1;
  while (k >= 0 && scopeStart[k] + data.scopes.length[k] <= submit[task])
    k--;
  return k;
}

// What a task was given is, in the columns of data.arguments, from the one position to the other.
const firstArgument = firstOf (n, data.arguments ? sumUp (data.arguments.task) : []);

const critical = Uint32Array.from (data.critical);
const criticalAt = new Map ();
critical.forEach ((entry, k) => criticalAt.set (entry, k));

// Is the one a producer of the other, itself or through tasks that ran nothing?
function isBehind (first, second) {
  return edgesInto (second).some (e => producer[e] === first
    || producer[e] >= 0 && isNaN (end[producer[e]]) && isBehind (first, producer[e]));
}

// What lies between two tasks of the critical path, and why the second came after the first.
function gapBefore (k) {
  const entry = critical[k];
  const waits = waitsOf (entry);
  if (k === 0)
    return { gap: start[entry] - submit[entry], why: "submit", ...waits };
  const previous = critical[k - 1];
  const gap = start[entry] - end[previous];
  return { gap, why: isBehind (owner[previous], owner[entry]) ? "data" : "core", ...waits };
}

// --- tensors that travelled, by row and start ---

const transfers = data.transfers || { n: 0 };
const firstTransfer = firstOf (rows.length, transfers.n ? transfers.row : []);
// What an entry was sent, gave back, and found there already.
const movedFor = new Map ();
const movedInAll = { sent: 0, received: 0, saved: 0 };
for (let k = 0; k < transfers.n; k++) {
  const sums = [movedFor.get (transfers.entry[k]) || { sent: 0, received: 0, saved: 0 }];
  movedFor.set (transfers.entry[k], sums[0]);
  if (rows[transfers.row[k]].depth === 0)
    sums.push (movedInAll);
  for (const sum of sums) {
    sum[transfers.is_back[k] ? "received" : "sent"] += transfers.bytes[k];
    sum.saved += transfers.saved[k];
  }
}

// --- charts ---

const strips = [];
{
  const kinds = new Map ();
  for (const series of data.strips) {
    const times = sumUp (series.time);
    const values = Float64Array.from (series.value);
    let strip = kinds.get (series.kind);
    if (!strip) {
      strip = { kind: series.kind, series: [], most: 0 };
      kinds.set (series.kind, strip);
      strips.push (strip);
    }
    strip.series.push ({ name: series.name, times, values, unit: series.kind === "heap" || series.kind === "moved" ? "bytes" : "" });
  }
  const highest = ({ values }) => values.reduce ((most, value) => Math.max (most, value), 0);
  for (const strip of strips) {
    strip.isStacked = strip.kind !== "ready" && strip.kind !== "moved" && strip.series.length > 1;
    if (strip.isStacked)
      stack (strip);
    for (const series of strip.series) {
      series.most = highest (series);
      strip.most = Math.max (strip.most, series.most, highest (series.top || series));
    }
  }
}

// Each series on top of those before it.
function stack (strip) {
  let below = { times: [], values: [] };
  for (const series of strip.series) {
    const times = [];
    const values = [];
    let a = 0, b = 0, lower = 0, own = 0;
    while (a < below.times.length || b < series.times.length) {
      const at = Math.min (below.times[a] ?? Infinity, series.times[b] ?? Infinity);
      while (below.times[a] === at)
        lower = below.values[a++];
      while (series.times[b] === at)
        own = series.values[b++];
      times.push (at);
      values.push (lower + own);
    }
    series.top = below = { times: Float64Array.from (times), values: Float64Array.from (values) };
  }
}

function valueAt (series, at) {
  const k = above (series.times, at);
  return k > 0 ? series.values[k - 1] : 0;
}

// --- kernels ---

const table = kernels.map ((kernel, k) => ({ kernel: k, name: kernel.name, count: 0, total: 0, min: Infinity, max: 0 }));
for (let i = 0; i < n; i++) {
  const took = end[i] - start[i] - waitedIn (i);
  const line = table[kernelOf[i]];
  if (isNaN (took))
    continue;
  line.count++;
  line.total += took;
  line.min = Math.min (line.min, took);
  line.max = Math.max (line.max, took);
}
{
  const all = table.reduce ((sum, line) => sum + line.total, 0);
  for (const line of table) {
    line.mean = line.count ? line.total / line.count : 0;
    line.share = all ? line.total / all : 0;
  }
}
const usedKernels = table.filter (line => line.count > 0);

// How busy the cores of each kind were, of the outermost run.
const kinds = [];
for (const row of rows) {
  if (row.depth > 0)
    continue;
  let kind = kinds.find (other => other.name === row.kind);
  if (!kind)
    kinds.push (kind = { name: row.kind, n: 0, busy: 0 });
  kind.n++;
  kind.busy += row.busy;
}
for (const kind of kinds)
  kind.share = data.elapsed > 0 ? kind.busy / kind.n / data.elapsed : 0;

// Of the outermost run.
const nTasks = sections[0].tasks;
const nOwnEdges = above (consumer, sections[0].entries - 1);
const span = Math.max (data.last, 1);
