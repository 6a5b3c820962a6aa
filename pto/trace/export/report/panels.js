// panels.js: what is said beside the picture?
// SPDX-License-Identifier: LGPL-2.1-or-later

const LISTED = 40;

// --- the head ---

function figure (name, value, beside, isBad) {
  return make ("div", { class: isBad ? "bad" : null }, make ("dt", {}, name), make ("dd", {}, value, make ("small", {}, beside || "")));
}

const path = { run: 0, gaps: 0, core: 0, scheduler: 0, before: 0, took: 0 };
critical.forEach ((entry, k) => {
  const gap = gapBefore (k);
  path.run += end[entry] - start[entry];
  if (k === 0) {
    path.before = start[entry];
    return;
  }
  path.gaps += gap.gap;
  path.core += Math.min (gap.core || 0, gap.gap);
});
path.scheduler = path.gaps - path.core;
if (critical.length > 0)
  path.took = end[critical[critical.length - 1]] - start[critical[0]];
const nCriticalTasks = new Set (Array.from (critical, entry => owner[entry])).size;

function fillHead () {
  const failed = Array.from ({ length: nTasks }, (_, i) => flags[i] & 1).reduce ((a, b) => a + b, 0);
  $ ("lead").textContent = [
    kinds.map (kind => count (kind.n, kind.name, kind.name === "AIC" || kind.name === "AIV" ? kind.name : undefined)).join (" + "),
    data.schedulers > 0 ? count (data.schedulers, "scheduler") : "",
    data.path,
    data.clock === "virtual" ? "virtual clock" : "wall clock"
  ].filter (text => text).join ("  \u00b7  ");
  fill ($ ("figures"), figure ("Makespan", duration (data.elapsed), data.clock === "virtual" ? "virtual time" : "wall time"),
    figure ("Tasks", group (nTasks), count (nOwnEdges, "edge") + (failed ? ", " + failed + " failed" : ""), failed > 0),
    sections.length > 1 ? figure ("Inside of them", group (n - sections[0].entries), "tasks of " + count (sections.length - 1, "run")) : null,
    ...kinds.map (kind => figure (kind.name[0].toUpperCase () + kind.name.slice (1) + " busy", percent (kind.share), "of " + count (kind.n, data.is_level ? "worker" : "core"))),
    ...critical.length ? [figure ("Critical path", duration (path.took),
      count (nCriticalTasks, "task") + ", " + percent (path.took > 0 ? path.run / path.took : 1) + " running")] : [],
    figure ("Dropped", data.dropped ? group (data.dropped) : "none", data.dropped ? "records are missing" : "of " + count (data.recorded, "record"), data.dropped > 0));
}

function fillLegend () {
  const most = 12;
  const shown = [...usedKernels].sort ((a, b) => b.total - a.total).slice (0, most).sort ((a, b) => a.kernel - b.kernel);
  fill ($ ("legend"), ...shown.map (line => make ("button", {
    type: "button", class: "key", title: `Find ${line.name}`, "aria-label": `Find ${line.name}`,
    onclick: () => find (line.name, true)
  }, swatch (line.kernel), make ("span", { class: "name" }, line.name), make ("small", {}, group (line.count)))),
  ...usedKernels.length > most ? [make ("small", {}, "and " + (usedKernels.length - most) + " more")] : [],
  ...transfers.n ? [make ("span", { class: "moved" }, make ("i", { class: "sent", "aria-hidden": "true" }), "tensors sent, ",
    make ("i", { class: "received", "aria-hidden": "true" }), "received")] : []);
}

// --- a task ---

function link (entry, ...beside) {
  return make ("button", { type: "button", class: "task", "data-entry": String (entry), onclick: () => goTo (entry) }, swatch (kernelOf[entry]), make ("b", {}, kernels[kernelOf[entry]].name), " ", make ("span", {}, taskNumber (entry)), ...beside);
}

// Where there is little room: the ring is in the words that are shown with the pointer.
function shortLink (entry) {
  const button = link (entry);
  button.replaceChildren (swatch (kernelOf[entry]), make ("b", {}, kernels[kernelOf[entry]].name), " " + taskNumber (entry));
  button.title = kernels[kernelOf[entry]].name + " " + taskNumber (entry);
  return button;
}

function listOf (title, items, total) {
  if (total === 0)
    return [];
  return [make ("h3", {}, title, make ("small", {}, group (total))), make ("ul", { class: "tasks" }, ...items.map (item => make ("li", {}, item))),
    items.length < total ? make ("p", { class: "more" }, "and " + count (total - items.length, "more", "more")) : null];
}

function barTable (lines) {
  const most = Math.max (...lines.map (line => isNaN (line[1]) ? 0 : line[1]), 1);
  return make ("table", { class: "bars" }, make ("tbody", {}, ...lines.filter (line => !isNaN (line[1])).map (([name, value, kind]) =>
    make ("tr", {}, make ("th", { scope: "row" }, name), make ("td", { class: "number" }, duration (value)),
      make ("td", { class: "bar-cell" }, make ("span", { class: "fill " + kind, hidden: value <= 0, style: { width: (100 * value / most).toFixed (1) + "%" } }))))));
}

function why (entry) {
  const task = owner[entry];
  const waits = waitsOf (entry);
  const late = lastProducer (task);
  const many = edgesInto (task).length;
  const words = [];
  if (isNaN (start[entry]))
    words.push ("It ran nothing: it only orders others.");
  if (late >= 0) {
    words.push (many === 1 ? "It was ready when its producer was complete: " : "It was ready when the last of " + group (many) + " producers was complete: ", link (late), ".");
  } else if (many > 0)
    words.push (many === 1 ? "Its producer was complete before it was submitted." : `All ${group (many)} producers were complete before it was submitted.`);
  else
    words.push ("It waited for no data.");
  if (waits.core > 0)
    words.push (` Then no core of its kind was free for ${duration (waits.core)}.`);
  if (waits.scheduler > 0)
    words.push (` ${waits.core > 0 ? "After that" : "Then"} it took ${duration (waits.scheduler)} to be dispatched and begun.`);
  return make ("p", { class: "why" }, ...words);
}

const TAGS = ["INPUT", "OUTPUT", "INOUT", "OUTPUT_EXISTING", "NO_DEP", "scalar", "COMMUTATIVE", "SCRATCH", "REDUCTION"];

// A tensor as type, shape, and strides where they are not those of the shape; a scalar as the number
// that its bits are.
function describeValue (value) {
  const { value_dtype: dtype, value_shape: shape, value_strides: strides, value_word: word, dtypes } = data.arguments;
  if (dtype[value] < 0)
    return [String (BigInt.asIntN (64, BigInt ("0x" + word[value]))), ""];
  return [`${dtypes[dtype[value]]} [${shape[value].join (", ")}]` + (strides[value].length ? ` by [${strides[value].join (", ")}]` : ""),
    "0x" + word[value]];
}

function showArguments (task) {
  const lines = [];
  for (let k = firstArgument[task]; k < firstArgument[task + 1]; k++) {
    const [what, where] = describeValue (data.arguments.value[k]);
    lines.push (make ("tr", {}, make ("th", { scope: "row" }, String (data.arguments.index[k])),
      make ("td", { class: "tag" }, TAGS[data.arguments.tag[k]] || String (data.arguments.tag[k])),
      make ("td", {}, what), make ("td", { class: "code number" }, where)));
  }
  return lines.length ? [make ("h3", {}, "Arguments"), make ("table", { class: "plain arguments" }, make ("tbody", {}, ...lines))] : [];
}

// Which of the consumer's arguments is why it waits.
function causeOf (e) {
  const { consumer_argument: argument, bytes } = data.edges;
  return argument && argument[e] >= 0 ? `, argument ${argument[e]}, ${count (bytes[e], "byte")}` : "";
}

function baseName (path) {
  return path.slice (path.lastIndexOf ("/") + 1);
}

function showTask () {
  const panel = $ ("panel-task");
  if (selected < 0) {
    fill (panel, make ("p", { class: "hint" }, "Select a task to see what it waited for, who it waited for, and who waited for it: click a bar, or press Enter in the picture."),
      ...whereToLook ());
    return;
  }
  const task = owner[selected];
  const waits = waitsOf (selected);
  const late = lastProducer (task);
  const into = edgesInto (task).sort ((a, b) => (producer[b] === late) - (producer[a] === late)
    || (producer[a] < 0) - (producer[b] < 0) || doneAt (producer[b]) - doneAt (producer[a]));
  const from = edgesFrom (task);
  const members = [task, ...membersOf.get (task) || []].filter (entry => entry !== selected);
  const section = sections[sectionOf[selected]];
  const inner = insideOf.get (selected);
  const own = time => section.own > 0 && section.took > 0 ? (time - section.begin) * section.own / section.took : NaN;
  const source = sourceOf (data.tasks, task);
  const scope = scopeOf (task);
  const opened = scope >= 0 ? sourceOf (data.scopes, scope) : "";

  fill (panel, 
    make ("h2", {}, swatch (kernelOf[selected]), kernels[kernelOf[selected]].name, make ("span", { class: "id" }, "task " + taskNumber (selected))),
    make ("p", { class: "where" }, [
      rowOf[selected] >= 0 ? "on " + rowName (rowOf[selected]) : "on no core",
      block && block[selected] >= 0 ? "block " + block[selected] : "",
      priority && priority[task] > 0 ? "priority " + priority[task] : "",
      schedulerOf[selected] >= 0 ? "by scheduler " + schedulerOf[selected] : ""
    ].filter (text => text).join (", ")),
    source ? make ("p", { class: "where", title: source }, "submitted at ", make ("span", { class: "code" }, baseName (source))) : null,
    opened ? make ("p", { class: "where", title: opened }, "in the scope of ", make ("span", { class: "code" }, baseName (opened))) : null,
    make ("p", { class: "badges" },
      criticalAt.has (selected) ? make ("span", { class: "badge critical" }, "on the critical path") : null,
      flags[selected] & 1 ? make ("span", { class: "badge failed" }, "failed") : null),
    why (selected),
    make ("h3", {}, "Where its time went"),
    barTable ([
      ["waited for data", waits.data, "data"],
      ["waited for a core", waits.core, "core"],
      ["waited for the scheduler", waits.scheduler, "scheduler"],
      ["ran", waits.run, "run"],
      ["waited for other kernels", waits.others, "core"],
      ["until its end was seen", waits.notice, "scheduler"],
      ["kept its slot", waits.slot, "slot"]
    ]),
    make ("h3", {}, "Times"),
    make ("table", { class: "plain times" }, make ("tbody", {}, ...["submit", "ready", "dispatch", "ack", "start", "end", "complete", "retire"]
      .filter (name => !isNaN (time[name][selected])).map (name => make ("tr", { "data-time": name },
        make ("th", { scope: "row" }, { submit: "submitted", dispatch: "dispatched", ack: "acknowledged", start: "started", end: "ended", retire: "retired" }[name] || name),
        make ("td", { class: "number" }, moment (time[name][selected])),
        make ("td", { class: "number faint" }, name === "submit" ? "" : "+" + duration (time[name][selected] - submit[selected])))))),
    section.virtual && section.own > 0 ? make ("p", { class: "more" }, `Its chip has a virtual clock: there it ran from ${duration (own (start[selected]))} to ${duration (own (end[selected]))}. Here that is stretched over the time that the run took.`) : null,
    ...movedFor.has (selected) ? facts ("Tensors", movedLines (movedFor.get (selected))) : [],
    ...showArguments (task),
    ...listOf ("Waited for", into.slice (0, LISTED).map (e => producer[e] < 0
      ? make ("span", { class: "gone" }, "task " + goneName (gone.get (e)) + ", whose records were dropped")
      : link (producer[e], make ("small", {}, hazardNames (hazards[e]) + causeOf (e)), producer[e] === late ? make ("span", { class: "badge late" }, "last to arrive") : null)), into.length),
    ...listOf ("Others waited for it", from.slice (0, LISTED).map (e => link (consumer[e], make ("small", {}, hazardNames (hazards[e]) + causeOf (e)),
      lastProducer (consumer[e]) === task ? make ("span", { class: "badge" }, "it was the last") : null)), from.length),
    ...listOf ("On other cores", members.slice (0, LISTED).map (entry => link (entry, make ("small", {}, (rowOf[entry] >= 0 ? rows[rowOf[entry]].name : "")
      + (block && block[entry] >= 0 ? ", block " + block[entry] : "")))), members.length),
    inner !== undefined ? make ("p", { class: "inside" }, make ("button", { type: "button", onclick: () => showInside (inner) },
      `Look inside: ${count (sections[inner].tasks, "task")} on ${sections[inner].path}`)) : null,
    section.task >= 0 ? make ("p", { class: "inside" }, "Inside of ", link (section.task)) : null);
  panel.scrollTop = 0;
}

function showInside (s) {
  const section = sections[s];
  let first = -1;
  let last = 0;
  for (let i = section.first; i < section.first + section.entries; i++)
    if (!isNaN (start[i])) {
      if (first < 0 || start[i] < start[first])
        first = i;
      last = Math.max (last, end[i]);
    }
  if (first < 0)
    return;
  goTo (first);
  const width = Math.max (last - start[first], 1);
  glideTo (start[first] - 0.05 * width, last + 0.05 * width);
}

// Of all entries: who ran longest, and who waited longest.
let extremes = null;
function findExtremes () {
  const best = { run: [-1, 0], core: [-1, 0], scheduler: [-1, 0] };
  const failed = [];
  const offer = (kind, entry, value) => {
    if (value > best[kind][1])
      best[kind] = [entry, value];
  };
  runs.forEach (list => {
    for (let k = 0; k < list.length; k++) {
      const i = list[k];
      offer ("run", i, end[i] - start[i]);
      offer ("core", i, data.tasks.wait_core[i] || 0);
      offer ("scheduler", i, data.tasks.wait_scheduler[i] || 0);
      if (flags[i] & 1 && !isMember[i] && failed.length < 5)
        failed.push (i);
    }
  });
  extremes = { ...best, failed };
}

function whereToLook () {
  if (!extremes)
    return [];
  const items = [
    ...extremes.failed.map (entry => link (entry, make ("small", {}, "failed"))),
    ...critical.length ? [link (critical[critical.length - 1], make ("small", {}, "ended last"))] : [],
    ...[["run", "ran longest"], ["core", "waited longest for a core"], ["scheduler", "waited longest for the scheduler"]]
      .filter (([kind]) => extremes[kind][0] >= 0)
      .map (([kind, words]) => link (extremes[kind][0], make ("small", {}, words + ", " + duration (extremes[kind][1]))))
  ];
  return items.length ? [make ("h3", {}, "Where to look first"), make ("ul", { class: "tasks" }, ...items.map (item => make ("li", {}, item)))] : [];
}

// --- kernels ---

const columns = [
  ["name", "Kernel", line => line.name],
  ["count", "Runs", line => group (line.count)],
  ["total", "Total", line => duration (line.total)],
  ["mean", "Mean", line => duration (line.mean)],
  ["min", "Least", line => duration (line.min)],
  ["max", "Most", line => duration (line.max)],
  ["share", "Share", line => percent (line.share)]
];
const order = { by: "total", isUp: false };

function showKernels () {
  const lines = [...usedKernels].sort ((a, b) => {
    const way = order.isUp ? 1 : -1;
    return way * (order.by === "name" ? a.name.localeCompare (b.name) : a[order.by] - b[order.by]) || a.kernel - b.kernel;
  });
  const most = Math.max (...lines.map (line => line.share), 1e-9);
  fill ($ ("panel-kernels"), make ("div", { class: "wide" }, make ("table", { class: "sheet", id: "kernels" },
    make ("thead", {}, make ("tr", {}, ...columns.map (([key, name]) => make ("th", {
      scope: "col", "aria-sort": order.by === key ? order.isUp ? "ascending" : "descending" : "none"
    }, make ("button", { type: "button", "data-by": key, onclick: () => {
      order.isUp = order.by === key ? !order.isUp : key === "name";
      order.by = key;
      showKernels ();
      $ ("panel-kernels").querySelector (`[data-by="${key}"]`).focus ();
    } }, name))))),
    make ("tbody", {}, ...lines.map (line => make ("tr", {}, ...columns.map (([key, , text]) => key === "name"
      ? make ("th", { scope: "row" }, make ("button", { type: "button", class: "task", title: `Find ${line.name}`, onclick: () => find (line.name, true) },
        swatch (line.kernel), make ("b", {}, line.name)))
      : key === "share" ? make ("td", { class: "number share" }, make ("span", { class: "fill run", style: { width: (100 * line.share / most).toFixed (1) + "%", background: kernels[line.kernel].colour } }),
        make ("span", {}, text (line))) : make ("td", { class: "number" }, text (line)))))))));
}

// --- the critical path ---

let nListed = 200;
function showPath () {
  if (critical.length === 0) {
    fill ($ ("panel-path"), make ("p", { class: "hint" }, "Nothing ran."));
    return;
  }
  const parts = [
    ["until its first task began", path.before, "slot"],
    ["tasks of it ran", path.run, "run"],
    ["waited for a core", path.core, "core"],
    ["waited for the scheduler", path.scheduler, "scheduler"]
  ];
  const total = path.before + path.took;
  fill ($ ("panel-path"), make ("p", { class: "hint" }, `The chain that made the run last as long as it did: from the task that ended last back, each time to what it waited for. ${count (nCriticalTasks, "task")}; ${percent (total > 0 ? path.run / total : 0)} of ${duration (total)} were spent in them.`),
    make ("div", { class: "stack", "aria-hidden": "true" }, ...parts.filter (part => part[1] > 0).map (([name, value, kind]) =>
      make ("span", { class: "fill " + kind, title: `${name}: ${duration (value)}`, style: { width: (100 * value / total).toFixed (2) + "%" } }))),
    make ("table", { class: "bars shares" }, make ("tbody", {}, ...parts.map (([name, value, kind]) => make ("tr", {},
      make ("th", { scope: "row" }, make ("span", {}, make ("span", { class: "swatch fill " + kind }), name)),
      make ("td", { class: "number" }, duration (value)), make ("td", { class: "number" }, percent (total > 0 ? value / total : 0)))))),
    make ("table", { class: "sheet", id: "path" },
      make ("thead", {}, make ("tr", {}, ...["Task", "Began", "Ran", "Before it", "Why"].map (name => make ("th", { scope: "col" }, name)))),
      make ("tbody", {}, ...Array.from (critical.subarray (0, nListed), (entry, k) => {
        const gap = gapBefore (k);
        return make ("tr", { "data-row": String (entry), "aria-current": entry === selected ? "true" : null },
          make ("th", { scope: "row" }, shortLink (entry)),
          make ("td", { class: "number" }, moment (start[entry])),
          make ("td", { class: "number" }, duration (end[entry] - start[entry])),
          make ("td", { class: "number" }, duration (gap.gap)),
          make ("td", {}, make ("span", { class: "reason " + gap.why, title: reasons[gap.why] }, gap.why)));
      }))),
    nListed < critical.length ? make ("button", { type: "button", onclick: () => {
      nListed += 1000;
      showPath ();
    } }, `Show more of ${group (critical.length)}`) : "");
}

// --- the run ---

function facts (title, lines) {
  return [make ("h3", {}, title), make ("table", { class: "plain facts" }, make ("tbody", {}, ...lines.map (([name, value, beside]) =>
    make ("tr", {}, make ("th", { scope: "row" }, name), make ("td", { class: "number" }, value), make ("td", { class: "faint" }, beside || "")))))];
}

function movedLines (sum) {
  return [["sent", amount (sum.sent), "to where it ran"], ["received", amount (sum.received), "from there"],
    ["not sent again", amount (sum.saved), "was there already"]];
}

function showRun () {
  const stalls = new Map ();
  for (const stall of data.stalls) {
    const sum = stalls.get (stall.name) || { n: 0, ns: 0 };
    sum.n++;
    sum.ns += stall.end - stall.start;
    stalls.set (stall.name, sum);
  }
  const byHazard = HAZARDS.map (([bit, name]) => [name, hazards.reduce ((sum, kinds) => sum + (kinds & bit ? 1 : 0), 0)]).filter (line => line[1] > 0);
  const nGone = data.edges.gone.length;
  fill ($ ("panel-run"), ...facts ("Records", [
      ["recorded", group (data.recorded)],
      ["dropped", group (data.dropped), data.dropped ? "the parameter trace-records makes room for more" : "the record is complete"],
      ...data.drops.map (drop => ["of " + drop.name, group (drop.n)]),
      ...data.runs_left_out ? [["runs of workers left out", group (data.runs_left_out), count (data.records_left_out, "record")]] : [],
      ...data.runs_unseen > data.runs_left_out ? [["runs without a record", group (data.runs_unseen - data.runs_left_out), "cancelled, or lost with the worker"]] : [],
      ...nGone ? [["producers that are not here", group (nGone), "their records were dropped"]] : []
    ]),
    ...facts ("Busy", kinds.map (kind => [kind.name, percent (kind.share), `of ${count (kind.n, data.is_level ? "worker" : "core")}, ${duration (kind.busy)} in all`])),
    ...byHazard.length ? facts ("Edges", byHazard.map (([name, many]) => [name, group (many),
      { RAW: "the second reads what the first wrote", WAW: "both write", WAR: "the second writes what the first read", explicit: "the submit named the first", assumed: "an overlap was assumed, not proved" }[name]])) : [],
    ...stalls.size ? facts ("The submitter waited for", [...stalls].map (([name, sum]) => [name, duration (sum.ns), count (sum.n, "time")])) : [],
    ...transfers.n ? facts ("Tensors that travelled", movedLines (movedInAll)) : [],
    ...facts ("Most at one time", strips.filter (strip => strip.kind !== "moved").flatMap (strip => strip.series.map (series => [
      (stripNames[strip.kind] || strip.kind) + (strip.series.length > 1 ? ", " + series.name : ""), formatValue (series, series.most)]))),
    sections.length > 1 ? make ("h3", {}, "Runs below", make ("small", {}, group (sections.length - 1))) : "",
    sections.length > 1 ? make ("ul", { class: "tasks" }, ...sections.slice (1, 1 + LISTED).map ((section, k) => make ("li", {},
      make ("button", { type: "button", class: "task", onclick: () => showInside (k + 1) }, make ("b", {}, section.path), make ("small", {}, count (section.tasks, "task")))))) : "");
}
