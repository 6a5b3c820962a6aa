// page.js: what follows from what a person does?
// SPDX-License-Identifier: LGPL-2.1-or-later

// --- selecting ---

function select (entry) {
  selected = entry;
  relate ();
  openPanel ("task", entry >= 0);
  showTask ();
  for (const line of document.querySelectorAll ("#path [data-row]"))
    line.toggleAttribute ("aria-current", Number (line.dataset.row) === entry);
  say (entry < 0 ? "nothing is selected" : `${taskName (entry)} on ${rowOf[entry] >= 0 ? rowName (rowOf[entry]) : "no core"}, ran ${duration (end[entry] - start[entry])}`);
  drawGraph ();
  draw ();
}

// -1: nowhere.
function goTo (entry) {
  if (entry < 0)
    return;
  select (entry);
  reveal (entry);
}

// The one before or behind in its row, or the nearest in time in another row.
function step (along, across) {
  if (selected < 0 || rowOf[selected] < 0)
    return false;
  const list = runs[rowOf[selected]];
  let next = -1;
  if (along !== 0)
    next = list[positionInRow (selected) + along];
  else {
    const middle = (start[selected] + end[selected]) / 2;
    const shown = place ? place.shown : rows.map ((_, r) => r);
    for (let k = shown.indexOf (rowOf[selected]) + across; k >= 0 && k < shown.length; k += across) {
      const others = runs[shown[k]];
      if (others.length === 0)
        continue;
      const p = Math.min (above (latest[shown[k]], middle), others.length - 1);
      next = p > 0 && Math.abs (end[others[p - 1]] - middle) < Math.abs (start[others[p]] - middle) ? others[p - 1] : others[p];
      break;
    }
  }
  if (next !== undefined)
    goTo (next);
  return true;
}

function selectMiddle () {
  const middle = (view.t0 + view.t1) / 2;
  let best = -1;
  let distance = Infinity;
  for (const r of place.shown) {
    const list = runs[r];
    for (let k = Math.max (0, above (latest[r], middle) - 1); k < list.length && k <= above (latest[r], middle); k++) {
      const off = Math.max (0, start[list[k]] - middle, middle - end[list[k]]);
      if (off < distance) {
        distance = off;
        best = list[k];
      }
    }
  }
  goTo (best);
}

// --- finding ---

let found = [];
let foundAt = -1;

// By a part of a kernel's name, a task's number, 12, 1:12 or "12 of ring 1", or both, QK 1:12.
function find (text, isExact) {
  const wanted = text.trim ().toLowerCase ();
  const number = /^(?:(\d+)\s*:\s*)?#?(\d+)(?:\s+of\s+ring\s+(\d+))?$/.exec (wanted);
  if (isExact)
    $ ("search").value = text;
  found = [];
  foundAt = -1;
  hits = null;
  if (wanted) {
    hits = new Uint8Array (n);
    const names = kernels.map (kernel => isExact ? kernel.name === text : kernel.name.toLowerCase ().includes (wanted));
    const both = /^(.*\S)\s+#?(?:(\d+)\s*:\s*)?(\d+)$/.exec (wanted);
    for (let i = 0; i < n; i++) {
      const isNumber = number && !isExact && local[i] === Number (number[2])
        && (number[1] === undefined && number[3] === undefined || ring[i] === Number (number[1] || number[3]));
      const isBoth = both && local[i] === Number (both[3]) && (both[2] === undefined || ring[i] === Number (both[2])) && kernels[kernelOf[i]].name.toLowerCase () === both[1];
      if (isNumber || isBoth || names[kernelOf[i]]) {
        hits[i] = 1;
        if (!isMember[i])
          found.push (i);
      }
    }
    const at = i => isNaN (start[i]) ? submit[i] : start[i];
    found.sort ((a, b) => at (a) - at (b) || a - b);
  }
  tellHits ();
  drawGraph ();
  draw ();
}

function tellHits () {
  $ ("hits").textContent = hits === null ? "" : found.length === 0 ? "none"
    : foundAt < 0 ? group (found.length) : group (foundAt + 1) + "\u2009/\u2009" + group (found.length);
  $ ("previous").disabled = $ ("next").disabled = found.length === 0;
}

function goToHit (by) {
  if (found.length === 0)
    return;
  foundAt = foundAt < 0 ? by > 0 ? 0 : found.length - 1 : (foundAt + by + found.length) % found.length;
  goTo (found[foundAt]);
  tellHits ();
}

// --- tabs ---

function makeTabs (list, open) {
  const tabs = Array.from ($ (list).children);
  tabs.forEach ((tab, k) => {
    tab.addEventListener ("click", () => open (tab.id.slice (4)));
    tab.addEventListener ("keydown", event => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by)
        return;
      const next = tabs[(k + by + tabs.length) % tabs.length];
      next.focus ();
      open (next.id.slice (4));
      event.preventDefault ();
      event.stopPropagation ();
    });
  });
}

function mark (list, name) {
  for (const tab of $ (list).children) {
    const isOpen = tab.id === "tab-" + name;
    tab.setAttribute ("aria-selected", String (isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
  }
}

let panel = "task";
function openPanel (name, isWanted = true) {
  if (!isWanted)
    return;
  panel = name;
  mark ("panels", name);
  for (const each of ["task", "kernels", "path", "run"])
    $ ("panel-" + each).hidden = each !== name;
}

function openView (name) {
  mark ("views", name);
  canvas.hidden = over.hidden = name !== "timeline";
  graph.toggleAttribute ("hidden", name !== "graph");
  $ ("note").hidden = name !== "graph";
  if (name === "graph") {
    graphView.key = "";
    drawGraph ();
  } else
    draw ();
}

// --- the pointer ---

function at (event) {
  const box = canvas.getBoundingClientRect ();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

let drag = null;

canvas.addEventListener ("pointerdown", event => {
  if (event.button !== 0)
    return;
  const { x, y } = at (event);
  drag = { x, y, t0: view.t0, t1: view.t1, scroll: view.scroll, isMoved: false, isOverview: y < OVERVIEW && x >= place.left };
  canvas.setPointerCapture (event.pointerId);
  if (drag.isOverview)
    moveOverview (x);
});

function moveOverview (x) {
  const width = view.t1 - view.t0;
  const middle = (x - place.left) / (place.right - place.left) * span;
  setView (middle - width / 2, middle + width / 2);
}

canvas.addEventListener ("pointermove", event => {
  pointer = at (event);
  if (drag) {
    const dx = pointer.x - drag.x;
    if (Math.abs (dx) > 3 || Math.abs (pointer.y - drag.y) > 3)
      drag.isMoved = true;
    if (drag.isOverview)
      moveOverview (pointer.x);
    else if (drag.isMoved) {
      const by = -dx / (place.right - place.left) * (drag.t1 - drag.t0);
      view.scroll = drag.scroll - (pointer.y - drag.y);
      setView (drag.t0 + by, drag.t1 + by);
      canvas.style.cursor = "grabbing";
    }
    hideTip ();
    return;
  }
  hovered = entryAt (pointer.x, pointer.y);
  canvas.style.cursor = hovered >= 0 || isAtFold (pointer.y)
    || pointer.x < place.left && rowAt (pointer.y) >= 0 && children[rowAt (pointer.y)].length ? "pointer" : "";
  showTip (event);
  drawOver ();
});

canvas.addEventListener ("pointerup", event => {
  const was = drag;
  drag = null;
  canvas.style.cursor = "";
  if (!was || was.isMoved || was.isOverview)
    return;
  const { x, y } = at (event);
  const r = rowAt (y);
  if (x < place.left && r >= 0 && children[r].length > 0) {
    if (!collapsed.delete (r))
      collapsed.add (r);
    draw ();
    return;
  }
  if (isAtFold (y)) {
    toggleIdle ();
    return;
  }
  if (y >= place.top && y < place.bottom && x >= place.left)
    select (entryAt (x, y));
});

canvas.addEventListener ("pointerleave", () => {
  pointer = null;
  hovered = -1;
  hideTip ();
  drawOver ();
});

canvas.addEventListener ("dblclick", event => {
  const { x, y } = at (event);
  const entry = entryAt (x, y);
  if (entry >= 0)
    showEntry (entry);
});

canvas.addEventListener ("wheel", event => {
  const { x, y } = at (event);
  const unit = event.deltaMode === 1 ? 16 : 1;
  event.preventDefault ();
  if (x < place.left && y > place.top || event.altKey)
    scrollBy (event.deltaY * unit);
  else if (event.shiftKey || Math.abs (event.deltaX) > Math.abs (event.deltaY))
    move ((event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) * unit / 1000);
  else
    zoom (Math.exp (Math.max (-1, Math.min (1, event.deltaY * unit / 400))), timeAt (Math.max (x, place.left)));
}, { passive: false });

function hideTip () {
  $ ("tip").hidden = true;
}

function showTip (event) {
  const transfer = hovered < 0 ? transferAt (pointer.x, pointer.y) : -1;
  if (transfer >= 0) {
    const entry = transfers.entry[transfer];
    putTip (event, make ("b", {}, amount (transfers.bytes[transfer]) + (transfers.is_back[transfer] ? " received from " : " sent to ") + rowName (transfers.row[transfer])),
      make ("div", {}, "in " + duration (transfers.length[transfer]) + (entry >= 0 ? " for " + taskName (entry) : "")));
    return;
  }
  if (hovered < 0) {
    hideTip ();
    return;
  }
  const waits = waitsOf (hovered);
  putTip (event, make ("b", {}, swatch (kernelOf[hovered]), kernels[kernelOf[hovered]].name, make ("span", {}, " " + taskNumber (hovered))),
    make ("div", {}, duration (end[hovered] - start[hovered]) + " on " + rowName (rowOf[hovered]) + (flags[hovered] & 1 ? ", failed" : "")),
    make ("small", {}, [waits.data > 0 && edgesInto (owner[hovered]).length ? "data " + duration (waits.data) : "", waits.core > 0 ? "core " + duration (waits.core) : "",
      waits.scheduler > 0 ? "scheduler " + duration (waits.scheduler) : ""].filter (text => text).join (", ")));
}

function putTip (event, ...content) {
  const tip = $ ("tip");
  tip.replaceChildren (...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect ();
  tip.style.left = Math.max (4, Math.min (event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY + 20 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18) + "px";
}

let graphDrag = null;
graph.addEventListener ("pointerdown", event => {
  if (!event.target.closest (".node"))
    graphDrag = { x: event.clientX - graphView.x, y: event.clientY - graphView.y };
});
addEventListener ("pointermove", event => {
  if (!graphDrag)
    return;
  graphView.x = event.clientX - graphDrag.x;
  graphView.y = event.clientY - graphDrag.y;
  placeGraph ();
});
addEventListener ("pointerup", () => graphDrag = null);
graph.addEventListener ("wheel", event => {
  const box = graph.getBoundingClientRect ();
  event.preventDefault ();
  zoomGraph (Math.exp (-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });

// --- keys ---

function zoomEither (factor) {
  const box = $ ("stage").getBoundingClientRect ();
  if (canvas.hidden)
    zoomGraph (1 / factor, box.width / 2, box.height / 2);
  else
    zoom (factor);
}

function fitEither () {
  if (!canvas.hidden) {
    showAll ();
    return;
  }
  graphView.key = "";
  drawGraph ();
}

function moveEither (x, y) {
  if (canvas.hidden) {
    graphView.x -= x * 240;
    graphView.y -= y * 240;
    placeGraph ();
  } else if (x)
    move (x);
  else
    scrollBy (y * 120);
}

const keys = {
  w: () => zoomEither (0.6),
  s: () => zoomEither (1 / 0.6),
  "+": () => zoomEither (0.6),
  "-": () => zoomEither (1 / 0.6),
  a: () => moveEither (-0.2, 0),
  d: () => moveEither (0.2, 0),
  ArrowLeft: () => canvas.hidden || !step (-1, 0) ? moveEither (-0.1, 0) : null,
  ArrowRight: () => canvas.hidden || !step (1, 0) ? moveEither (0.1, 0) : null,
  ArrowUp: () => canvas.hidden || !step (0, -1) ? moveEither (0, -0.3) : null,
  ArrowDown: () => canvas.hidden || !step (0, 1) ? moveEither (0, 0.3) : null,
  0: fitEither,
  Home: fitEither,
  f: () => selected >= 0 && !canvas.hidden ? showEntry (selected) : null,
  Enter: () => !canvas.hidden ? selectMiddle () : null,
  c: () => toggleCritical (),
  e: () => toggleIdle (),
  g: () => openView (canvas.hidden ? "timeline" : "graph"),
  t: () => switchTheme (),
  p: () => goTo (selected >= 0 ? lastProducer (owner[selected]) : -1),
  n: () => goTo (selected >= 0 ? firstConsumer (owner[selected]) : -1),
  "/": () => $ ("search").focus (),
  "?": () => $ ("help").showModal (),
  Escape: () => {
    $ ("search").value = "";
    find ("");
    select (-1);
  }
};

function firstConsumer (task) {
  return edgesFrom (task).map (e => consumer[e]).reduce ((best, other) => best < 0 || start[other] < start[best] ? other : best, -1);
}

addEventListener ("keydown", event => {
  const isTyping = event.target.matches && event.target.matches ("input, select, textarea");
  const isPressing = event.target.matches && event.target.matches ("button, [role=button]") && [" ", "Enter"].includes (event.key);
  if (event.ctrlKey || event.metaKey || event.altKey || $ ("help").open || isPressing)
    return;
  if (isTyping && event.key !== "Escape")
    return;
  if (event.target.closest && event.target.closest ("[role=tabpanel]") && event.key.startsWith ("Arrow") && event.target.scrollHeight > event.target.clientHeight)
    return;
  const key = keys[event.key.length === 1 ? event.key.toLowerCase () : event.key];
  if (!key)
    return;
  event.preventDefault ();
  key ();
});

$ ("search").addEventListener ("input", () => find ($ ("search").value));
$ ("search").addEventListener ("keydown", event => {
  if (event.key === "Enter") {
    event.preventDefault ();
    goToHit (event.shiftKey ? -1 : 1);
  } else if (event.key === "Escape") {
    $ ("search").blur ();
    canvas.focus ();
  }
});
$ ("previous").addEventListener ("click", () => goToHit (-1));
$ ("next").addEventListener ("click", () => goToHit (1));
$ ("in").addEventListener ("click", () => zoomEither (0.6));
$ ("out").addEventListener ("click", () => zoomEither (1 / 0.6));
$ ("fit").addEventListener ("click", fitEither);
$ ("helper").addEventListener ("click", () => $ ("help").showModal ());
$ ("printer").addEventListener ("click", () => print ());

function toggleCritical () {
  isCriticalShown = !isCriticalShown;
  $ ("critical").setAttribute ("aria-pressed", String (isCriticalShown));
  drawGraph ();
  draw ();
}
$ ("critical").addEventListener ("click", toggleCritical);

function toggleIdle () {
  if (idle.rows.size === 0)
    return;
  isIdleShown = !isIdleShown;
  say (foldText ());
  draw ();
}

// --- light and dark ---

const isDarkWanted = matchMedia ("(prefers-color-scheme: dark)");

function isDark () {
  const own = document.documentElement.dataset.theme;
  return own ? own === "dark" : isDarkWanted.matches;
}

function switchTheme () {
  document.documentElement.dataset.theme = isDark () ? "light" : "dark";
  readInk ();
  draw ();
}
$ ("theme").addEventListener ("click", switchTheme);
isDarkWanted.addEventListener ("change", () => {
  readInk ();
  draw ();
});

// --- paper ---

// All of the run, on white, whatever is on the screen.
function drawPaper () {
  const paper = $ ("paper");
  const folded = new Set (collapsed);
  const own = [document.documentElement.dataset.theme, ink];
  const [wasSelected, wasRelated, wasHits] = [selected, related, hits];
  document.documentElement.dataset.theme = "light";
  readInk ();
  collapsed.clear ();
  selected = -1;
  related = hits = null;
  const page = arrange (1500, NaN, rows.length > 60 ? 9 : 15);
  paper.width = 3000;
  paper.height = Math.min (2 * page.height, 16000);
  const scene = makeScene (paper.getContext ("2d"), page, 0, span, 0, ink);
  scene.c.setTransform (2, 0, 0, 2, 0, 0);
  paint (scene, true);
  folded.forEach (r => collapsed.add (r));
  [selected, related, hits] = [wasSelected, wasRelated, wasHits];
  if (own[0])
    document.documentElement.dataset.theme = own[0];
  else
    delete document.documentElement.dataset.theme;
  ink = own[1];
}

addEventListener ("beforeprint", drawPaper);

// --- beginning ---

makeTabs ("views", openView);
makeTabs ("panels", name => openPanel (name));
readInk ();
fillHead ();
fillLegend ();
tellHits ();
render ();
showTask ();
showKernels ();
showPath ();
showRun ();
new ResizeObserver (() => {
  draw ();
  drawGraph ();
}).observe ($ ("stage"));
setTimeout (() => {
  findExtremes ();
  if (selected < 0)
    showTask ();
}, 0);

// What tests ask.
window.report = {
  get view () { return { ...view }; },
  get selected () { return selected; },
  get isMoving () { return motion !== null || isDue; },
  get found () { return found.slice (); },
  n,
  spot: entry => ({ x0: currentScene ().x (start[entry]), x1: currentScene ().x (end[entry]), y: rowMiddle (currentScene (), rowOf[entry]) }),
  rowY: row => rowMiddle (currentScene (), row),
  rowBox: row => [place.top - view.scroll + place.y.get (row), place.h.get (row)],
  shown: () => place.shown.slice (),
  fold: () => isNaN (place.fold) ? null : { text: foldText (), y: place.top - view.scroll + place.fold + FOLD / 2 },
  times: entry => Object.fromEntries (TIMES.map (name => [name, isNaN (time[name][entry]) ? null : time[name][entry]])),
  about: entry => ({ local: local[entry], ring: ring[entry], kernel: kernels[kernelOf[entry]].name, colour: kernels[kernelOf[entry]].colour,
    row: rowOf[entry], late: lastProducer (owner[entry]), waits: waitsOf (entry) }),
  redraw: () => {
    const before = performance.now ();
    render ();
    return performance.now () - before;
  },
  firstPicture: performance.now ()
};
document.documentElement.dataset.state = "ready";
