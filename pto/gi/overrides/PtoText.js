// PtoText.js: how does a message of the override come into the reader's language?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// As those of the library do, from its catalogue, where an error is made and nowhere else. What a text is about is put in behind the
// look-up, for each %s, or for %2$s the second: no catalogue has what a template makes. GJS's own format takes a %% for a value.
const place = /%(?:(\d+)\$)?([s%])/g;

// Marks a constant, which is translated where it is used.
function N_(text) {
    return text;
}

// A value as a program writes it, so that one of the wrong type is seen to be one: "2", 2n.
// Of what is long a message has the begin.
function shown(value) {
    if (typeof value === 'string')
        return value.length > 80 ? `${JSON.stringify(value.slice(0, 80))}...` : JSON.stringify(value);
    if (typeof value === 'bigint')
        return `${value}n`;
    if (Array.isArray(value) || ArrayBuffer.isView(value) && !(value instanceof DataView)) {
        const first = Array.from(value.slice(0, 12), shown);
        return `[${[...first, ...value.length > 12 ? ['...'] : []].join(', ')}]`;
    }
    return typeof value === 'object' && value !== null && typeof value.toString !== 'function' ? '{}' : String(value);
}

function _(text, ...values) {
    const translated = imports.gi.Pto.dup_translation(text, null, 1);
    let next = 0;
    return translated.replace(place, (whole, at, kind) => kind === '%' ? '%' : String(values[at === undefined ? next++ : at - 1]));
}
