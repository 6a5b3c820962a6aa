// PtoRemote.js: how does JavaScript ask for workers that share no memory with this program?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
const {GLib} = imports.gi;
const {isPlain, takeOptions} = imports.overrides.PtoArguments;
const {integerOf} = imports.overrides.PtoChecks;
const {_, shown} = imports.overrides.PtoText;

function textOf(where, value) {
    if (typeof value !== 'string')
        throw new TypeError(_('%s: %s is not a text', where, shown(value)));
    return value;
}

function textsOf(where, values) {
    if (typeof values !== 'string' && !Array.isArray(values))
        throw new TypeError(_('%s: %s is not a list of texts', where, shown(values)));
    return [values].flat().map(value => textOf(where, value));
}

function switchOf(where, value) {
    if (typeof value !== 'boolean')
        throw new TypeError(_('%s: %s is not true or false', where, shown(value)));
    return value;
}

function countOf(where, value) {
    const integer = integerOf(where, value);
    if (integer < 0 || integer >= 2 ** 32)
        throw new RangeError(_('%s: %s is not an integer of %s to %s', where, shown(value), 0, 2 ** 32 - 1));
    return integer;
}

const absolute = path => GLib.canonicalize_filename(path, null);

// By their names, as they are in Python; what bytes of functions are is known there alone.
const options = {
    devices: ['u', countOf], id: ['u', countOf], sub_workers: ['u', countOf],
    certificates: ['s', textOf], platform: ['s', textOf], program: ['s', textOf], python: ['s', textOf], trusted_fabric: ['s', textOf],
    launcher: ['as', textsOf], roots: ['as', textsOf],
    shell: ['b', switchOf],
};

// An object, nothing, or the dictionary as in C. Who imports functions needs an interpreter; of who listens it is chosen there.
function optionsOf(where, addresses, given) {
    if (given.length > 1 || (given.length === 1 && !isPlain(given[0]))) {
        const [dictionary] = given;
        if (given.length === 1 && (dictionary === null || dictionary === undefined || dictionary instanceof GLib.Variant))
            return dictionary ?? null;
        throw new TypeError(_('%s: %s is no object of options, as {devices: 2} is', where, shown(given.at(-1))));
    }
    const said = Object.entries(takeOptions(where, given, Object.keys(options))).filter(([, value]) => value !== null && value !== undefined);
    const values = Object.fromEntries(said.map(([name, value]) => [name, options[name][1](`${where}: ${name}`, value)]));
    const isHere = addresses.every(address => address === 'local:');
    if (isHere && values.roots !== undefined)
        values.roots = values.roots.map(absolute); // of other machines their directories
    if (values.certificates !== undefined)
        values.certificates = absolute(values.certificates);
    if (values.roots?.length > 0 && !addresses.some(address => /^(unix|tls):/.test(address)))
        values.python ??= 'python3';
    return new GLib.Variant('a{sv}', Object.fromEntries(Object.entries(values).map(([name, value]) =>
        [name.replaceAll('_', '-'), new GLib.Variant(options[name][0], value)])));
}

function takeRemotes(Pto) {
    const where = Pto.Worker.prototype, {add_cluster, add_remote_job, add_remote_worker} = where;
    where.add_remote_worker = function (address, ...given) {
        const name = 'Pto.Worker.add_remote_worker';
        return add_remote_worker.call(this, textOf(`${name}: address`, address), optionsOf(name, [address], given));
    };
    where.add_remote_job = function (addresses, ...given) {
        const name = 'Pto.Worker.add_remote_job', all = textsOf(`${name}: addresses`, addresses);
        return add_remote_job.call(this, all, optionsOf(name, all, given));
    };
    const {ref_bytes} = Pto.Buffer.prototype;
    Pto.Buffer.prototype.ref_bytes = function () {
        if (this.is_remote())
            throw new TypeError(_('this is memory of a remote worker, and is not here: read() and write() copy'));
        return ref_bytes.call(this);
    };
    where.add_cluster = function (file) {
        const before = this.get_n_workers();
        add_cluster.call(this, typeof file === 'string' ? Pto.ClusterFile.new(file) : file);
        return [...this.get_children()].slice(before);
    };
}
