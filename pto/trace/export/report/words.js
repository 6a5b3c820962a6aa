// words.js: how are numbers and tasks said?
// SPDX-License-Identifier: LGPL-2.1-or-later

const THIN = "\u2009";

function group (value) {
  return String (Math.round (value)).replace (/\B(?=(\d{3})+$)/g, THIN);
}

// Four digits, in the unit in which they tell most.
function duration (ns) {
  if (isNaN (ns))
    return "\u2013";
  const least = Math.abs (ns);
  const [factor, unit] = least < 1e3 ? [1, "ns"] : least < 1e6 ? [1e3, "\u00b5s"] : least < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const value = ns / factor;
  const digits = factor === 1 ? 0 : Math.abs (value) < 10 ? 3 : Math.abs (value) < 100 ? 2 : 1;
  return value.toFixed (digits).replace ("-", "\u2212") + THIN + unit;
}

function amount (bytes) {
  if (bytes < 1024)
    return count (bytes, "byte");
  return bytes < 1048576 ? (bytes / 1024).toFixed (1) + THIN + "KiB" : (bytes / 1048576).toFixed (1) + THIN + "MiB";
}

// A moment of the run: all of it is said in one unit.
const clock = span < 1e4 ? [1, "ns", 0] : span < 1e8 ? [1e3, "\u00b5s", 3] : [1e6, "ms", 6];
function moment (ns) {
  if (isNaN (ns))
    return "\u2013";
  const [whole, rest] = (ns / clock[0]).toFixed (clock[2]).split (".");
  return group (whole) + (rest ? "." + rest : "") + THIN + clock[1];
}

function percent (share) {
  return (100 * share).toFixed (share > 0 && share < 0.0995 ? 1 : 0) + THIN + "%";
}

function count (value, one, many) {
  return group (value) + "\u00a0" + (value === 1 ? one : many || one + "s");
}

// "9", or "1:9" of ring 1: as in the picture, the JSON, and for `pto trace FILE why`.
function taskNumber (entry) {
  return (ring[entry] ? ring[entry] + ":" : "") + local[entry];
}

function taskName (entry) {
  return kernels[kernelOf[entry]].name + " " + taskNumber (entry);
}

function goneName (id) {
  const r = Math.floor (id / 4294967296);
  return (r ? r + ":" : "") + id % 4294967296;
}

function rowName (row) {
  return rows[row].depth > 0 ? rows[row].path + " " + rows[row].name : rows[row].name;
}

const reasons = {
  submit: "submitted last of all it needed",
  data: "waited for what this made",
  core: "waited for this core"
};

// Elements are made of text, never of markup.
function make (name, attributes, ...content) {
  const element = attributes.svg ? document.createElementNS ("http://www.w3.org/2000/svg", name) : document.createElement (name);
  for (const [key, value] of Object.entries (attributes)) {
    if (key === "svg" || value === null || value === undefined || value === false)
      continue;
    if (key.startsWith ("on"))
      element.addEventListener (key.slice (2), value);
    else if (key === "style")
      for (const [property, text] of Object.entries (value))
        element.style.setProperty (property, text);
    else
      element.setAttribute (key, value === true ? "" : value);
  }
  element.append (...content.filter (item => item !== null && item !== undefined));
  return element;
}

// All that there is of a list, as the only children.
function fill (element, ...content) {
  element.replaceChildren (...content.flat ().filter (item => item !== null && item !== undefined && item !== ""));
}

function swatch (kernel) {
  return make ("span", { class: "swatch", "aria-hidden": "true", style: { "--colour": kernels[kernel].colour } });
}

function say (text) {
  $ ("live").textContent = text;
}
