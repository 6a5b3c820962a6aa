// tap.js: how does a test in JavaScript say what it found, and tell Meson?
// SPDX-License-Identifier: LGPL-2.1-or-later
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

// GJS 1.82 gives copies of memory where 1.74 gives the memory itself: here it is made to, whichever it is.
if (GLib.getenv('PTO_TEST_COPIES') !== null) {
    const {toArray} = GLib.Bytes.prototype;
    GLib.Bytes.prototype.toArray = function () {
        return toArray.call(this).slice();
    };
}

export function equal(found, expected, what) {
    if (!Object.is(found, expected))
        throw new Error(`${what}: ${String(found)} is not ${String(expected)}`);
}

export function check(error, type, part) {
    if (!(error instanceof type) || !error.message.includes(part))
        throw error;
    if (error instanceof Pto.Error)
        equal(error.name, 'Pto.Error', 'the name of an error');
    return error;
}

// As a program writes it.
export function shown(value) {
    return typeof value === 'string' ? `"${value}"` : typeof value === 'bigint' ? `${value}n` : String(value);
}

export function refused(call, type, part) {
    let result;
    try {
        result = call();
    } catch (error) {
        return check(error, type, part);
    }
    throw new Error(`not refused: ${part}, but ${String(result)}`);
}

export async function rejected(promise, type, part) {
    try {
        await promise;
    } catch (error) {
        return check(error, type, part);
    }
    throw new Error(`not rejected: ${part}`);
}

const made = [];

// A directory, which goes at the end, with all that is in it.
export function temporary() {
    made.push(GLib.Dir.make_tmp('pto-js-XXXXXX'));
    return made.at(-1);
}

function remove(path) {
    const file = Gio.File.new_for_path(path), noLinks = Gio.FileQueryInfoFlags.NOFOLLOW_SYMLINKS;
    if (file.query_file_type(noLinks, null) === Gio.FileType.DIRECTORY) {
        for (const info of file.enumerate_children('standard::name', noLinks, null))
            remove(GLib.build_filenamev([path, info.get_name()]));
    }
    file.delete(null);
}

// Whatever they do; then tidyUp(), and the exit status.
export async function main(tests, tidyUp = () => {}) {
    print(`1..${Object.keys(tests).length}`);
    let count = 0, failed = false;
    for (const [name, test] of Object.entries(tests)) {
        try {
            await test();
            print(`ok ${++count} ${name}`);
        } catch (error) {
            failed = true;
            print(`not ok ${++count} ${name}`);
            print(`# ${error}\n# ${error?.stack?.replaceAll('\n', '\n# ')}`);
        }
    }
    tidyUp();
    made.forEach(remove);
    System.exit(failed ? 1 : 0);
}
