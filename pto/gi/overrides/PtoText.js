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

// How many letters must be put in, left out, changed or exchanged with the next one, as nearest-word.h counts them.
function distance(one, other) {
    const rows = [Array.from({length: other.length + 1}, (unused, j) => j)];
    for (let i = 1; i <= one.length; i++) {
        rows[i] = [i];
        for (let j = 1; j <= other.length; j++) {
            rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + Number(one[i - 1] !== other[j - 1]));
            if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
                rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[one.length][other.length];
}

// Which of these words was meant by one that is none of them, if one was.
function findNearest(word, words) {
    const fold = text => text.toLowerCase().replaceAll('-', '_');
    const far = ([, one], [, other]) => one - other;
    const [found] = words.map(each => [each, distance(fold(word), fold(each))]).sort(far);
    const most = word.length < 5 ? Math.floor((word.length + 1) / 3) : 1 + Math.floor(word.length / 4);
    return found !== undefined && found[1] <= most ? found[0] : undefined;
}

// "; did you mean ...?" for a word that is none of these, or nothing. The words are those that can be taken in its place.
function nearest(word, words) {
    const found = findNearest(word, words);
    return found !== undefined ? _('; did you mean "%s"?', found) : '';
}
