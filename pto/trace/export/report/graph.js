// graph.js: how are tasks and what orders them drawn?
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// All of a small run, or what lies around the selected task. Producers are to the left of consumers:
// a task's column is the longest way to it.

const graph = $ ("graph");
const NODE_W = 128;
const NODE_H = 36;
const COLUMN = 62;
const LINE = 12;
const WHOLE = 160;
const AROUND = 60;

const graphView = { x: 0, y: 0, scale: 1, key: "" };

// Which tasks, and whether these are all.
function chooseNodes () {
  const middle = selected >= 0 ? owner[selected] : critical.length > 0 ? owner[critical[critical.length - 1]] : 0;
  const section = n > 0 ? sections[sectionOf[middle]] : sections[0];
  if (section.tasks <= WHOLE)
    return { list: Array.from ({ length: section.tasks }, (_, k) => section.first + k), isWhole: true };
  const found = new Set ([middle]);
  let edge = [middle];
  for (let depth = 0; depth < 3 && found.size < AROUND; depth++) {
    const next = [];
    for (const task of edge)
      for (const other of [...edgesInto (task).map (e => producer[e]), ...edgesFrom (task).map (e => consumer[e])])
        if (other >= 0 && !found.has (other) && found.size < AROUND) {
          found.add (other);
          next.push (other);
        }
    edge = next;
  }
  return { list: [...found].sort ((a, b) => a - b), isWhole: false };
}

// Columns of tasks, each in an order in which few arrows cross.
function layOut (list) {
  const inside = new Set (list);
  const column = new Map ();
  const columns = [];
  for (const task of list) {
    let at = 0;
    for (const e of edgesInto (task))
      if (inside.has (producer[e]) && column.has (producer[e]))
        at = Math.max (at, column.get (producer[e]) + 1);
    column.set (task, at);
    (columns[at] = columns[at] || []).push (task);
  }
  const line = new Map ();
  columns.forEach (tasks => tasks.forEach ((task, k) => line.set (task, k)));
  for (let sweep = 0; sweep < 6; sweep++) {
    const order = sweep % 2 ? [...columns].reverse () : columns;
    for (const tasks of order) {
      const weight = new Map ();
      for (const task of tasks) {
        const near = sweep % 2 ? edgesFrom (task).map (e => consumer[e]) : edgesInto (task).map (e => producer[e]);
        const lines = near.filter (other => inside.has (other)).map (other => line.get (other)
          - (columns[column.get (other)].length - 1) / 2);
        weight.set (task, lines.length ? lines.reduce ((a, b) => a + b) / lines.length : line.get (task) - (tasks.length - 1) / 2);
      }
      tasks.sort ((a, b) => weight.get (a) - weight.get (b) || a - b);
      tasks.forEach ((task, k) => line.set (task, k));
    }
  }
  const spots = new Map ();
  const tallest = Math.max (...columns.map (tasks => tasks.length), 1);
  columns.forEach ((tasks, x) => tasks.forEach ((task, k) => spots.set (task, {
    x: x * (NODE_W + COLUMN),
    y: (k + (tallest - tasks.length) / 2) * (NODE_H + LINE)
  })));
  return { spots, width: columns.length * (NODE_W + COLUMN) - COLUMN, height: tallest * (NODE_H + LINE) - LINE };
}

function drawGraph () {
  if (canvas.hidden === false)
    return;
  const { list, isWhole } = chooseNodes ();
  const { spots, width, height } = layOut (list);
  const task = selected >= 0 ? owner[selected] : -1;
  const late = task >= 0 ? lastProducer (task) : -1;
  const world = make ("g", { svg: true, id: "world" });
  const svg = { svg: true };
  graph.replaceChildren (make ("defs", svg, ...["", "-late", "-near"].map (kind =>
    make ("marker", { svg: true, id: "arrow" + kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto", markerUnits: "userSpaceOnUse" }, make ("path", { svg: true, d: "M0 0.5L8 4L0 7.5z", class: "arrow" + kind })))), world);
  const lines = make ("g", svg);
  const front = make ("g", svg);
  world.append (lines, front);
  for (const to of list)
    for (const e of edgesInto (to)) {
      const a = spots.get (producer[e]);
      const b = spots.get (to);
      if (!a)
        continue;
      const isNear = producer[e] === task || to === task;
      const isLate = to === task && producer[e] === late;
      const x0 = a.x + NODE_W;
      const y0 = a.y + NODE_H / 2;
      const x1 = b.x;
      const y1 = b.y + NODE_H / 2;
      const bend = Math.max (24, (x1 - x0) / 2);
      const path = make ("path", { svg: true, class: isLate ? "edge late" : isNear ? "edge near" : "edge",
        d: `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1 - 1} ${y1}`,
        "marker-end": isLate ? "url(#arrow-late)" : isNear ? "url(#arrow-near)" : "url(#arrow)" },
      make ("title", svg, `${taskName (producer[e])} \u2192 ${taskName (to)}: ${hazardNames (hazards[e])}`));
      (isNear ? front : lines).append (path);
    }
  for (const each of list) {
    const spot = spots.get (each);
    const kernel = kernels[kernelOf[each]];
    const isBrightNode = hits !== null ? hits[each] === 1 || each === task : related === null || related.has (each);
    const classes = ["node"];
    if (each === task)
      classes.push ("chosen");
    if (each === late)
      classes.push ("late");
    if (isCriticalShown && criticalAt.has (each))
      classes.push ("critical");
    if (!isBrightNode)
      classes.push ("dim");
    const label = kernel.name.length > 14 ? kernel.name.slice (0, 13) + "\u2026" : kernel.name;
    const node = make ("g", { svg: true, class: classes.join (" "), tabindex: "0", role: "button", "data-entry": String (each),
      transform: `translate(${spot.x} ${spot.y})`,
      "aria-label": `${taskName (each)}, ran ${duration (end[each] - start[each])}` },
    make ("rect", { svg: true, width: NODE_W, height: NODE_H, rx: 7, class: "back" }),
    make ("rect", { svg: true, width: NODE_W, height: NODE_H, rx: 7, fill: kernel.colour }),
    make ("text", { svg: true, x: 10, y: 15, class: "name" }, label + " " + taskNumber (each)),
    make ("text", { svg: true, x: 10, y: 28, class: "small" },
      isNaN (end[each]) ? "ran nothing" : duration (end[each] - start[each]) + " on " + rows[rowOf[each]].name));
    node.addEventListener ("click", () => select (each));
    node.addEventListener ("keydown", event => {
      if (event.key === "Enter" || event.key === " ") {
        select (each);
        event.preventDefault ();
        event.stopPropagation ();
        const again = graph.querySelector (`[data-entry="${each}"]`);
        if (again)
          again.focus ();
      }
    });
    front.append (node);
  }
  const key = isWhole ? "whole " + (list[0] || 0) : list.join (" ");
  if (key !== graphView.key)
    fitGraph (width, height, spots.get (task));
  graphView.key = key;
  graphView.width = width;
  graphView.height = height;
  placeGraph ();
  $ ("note").hidden = false;
  $ ("note").textContent = isWhole ? count (list.length, "task") + ", every one of "
    + (sections.length > 1 ? "its run" : "the run")
    : count (list.length, "task") + " around " + taskName (selected >= 0 ? owner[selected] : owner[critical[critical.length - 1] || 0]);
}

function fitGraph (width, height, spot) {
  const box = $ ("stage").getBoundingClientRect ();
  const whole = Math.min ((box.width - 48) / width, (box.height - 72) / height);
  graphView.scale = Math.max (0.3, Math.min (1.3, whole));
  graphView.x = (box.width - width * graphView.scale) / 2;
  graphView.y = (box.height - height * graphView.scale) / 2;
  if (graphView.scale > whole) {
    const middle = spot || { x: 0, y: height / 2 };
    graphView.x = spot ? box.width / 2 - (middle.x + NODE_W / 2) * graphView.scale : 24;
    graphView.y = box.height / 2 - (middle.y + NODE_H / 2) * graphView.scale;
  }
}

function placeGraph () {
  const world = $ ("world");
  if (world)
    world.setAttribute ("transform", `translate(${graphView.x} ${graphView.y}) scale(${graphView.scale})`);
}

function zoomGraph (factor, x, y) {
  const scale = Math.max (0.08, Math.min (4, graphView.scale * factor));
  graphView.x = x - (x - graphView.x) * scale / graphView.scale;
  graphView.y = y - (y - graphView.y) * scale / graphView.scale;
  graphView.scale = scale;
  placeGraph ();
}
