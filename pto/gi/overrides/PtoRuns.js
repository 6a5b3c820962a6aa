// PtoRuns.js: how does JavaScript make a worker, and give a run what it works on?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Arrays for a run, promises, and errors as they were thrown.
const {Gio, GLib, GObject} = imports.gi;
const {Copies, isArray} = imports.overrides.PtoArrays;
const {Argument, Scalar, argsOf, isPlain, takeOptions, untagged} = imports.overrides.PtoArguments;
const {idBelow} = imports.overrides.PtoChecks;
const {_, findNearest, nearest, shown} = imports.overrides.PtoText;

// As it can pass through C: an error of JavaScript, or one of GLib.
function errorOf(thrown) {
    return thrown instanceof Error || thrown instanceof GLib.Error ? thrown : new Error(_('not an Error was thrown: %s', shown(thrown)));
}

function configOf(config) {
    return isPlain(config) ? Object.assign(new imports.gi.Pto.CallConfig(), config) : config;
}

function isAsInC(rest) {
    const {CallConfig, TaskArgs} = imports.gi.Pto, types = [TaskArgs, CallConfig, Gio.Cancellable];
    return rest.length <= types.length && rest.every((value, i) => value === null || value === undefined || value instanceof types[i]);
}

function check(value) {
    const {CallConfig, TaskArgs} = imports.gi.Pto;
    if ([CallConfig, TaskArgs, Gio.Cancellable].some(type => value instanceof type)) {
        throw new TypeError(_('after what is run come its arguments, or one TaskArgs and perhaps a CallConfig: run(graph, x, y, ' +
            '{config, cancellable})'));
    }
}

// What is run, with all that it is given; what a run throws, and what becomes of arrays behind it.
class Run {
    constructor(what, rest, isCapture) {
        const {CallableHandle, Graph, Tensor} = imports.gi.Pto;
        if (typeof what !== 'function' && !(what instanceof Graph) && !(what instanceof CallableHandle))
            throw new TypeError(_('%s can not be run: a function can, the handle of what is registered, or a graph', shown(what)));
        const options = takeOptions('run', rest, ['config', 'cancellable']);
        this._what = what;
        this._thrown = null;
        this.given = [what, null, options.config ?? null, options.cancellable ?? null];
        if (isAsInC(rest)) {
            rest.forEach((value, i) => {
                this.given[i + 1] = value ?? this.given[i + 1];
            });
        } else {
            rest.forEach(check);
            this._copies = new Copies(rest);
            this._data = rest.map(value => isArray(value) || Array.isArray(value) || value instanceof imports.gi.Pto.Buffer
                ? this._copies.tensorOf(value) : value);
            if (isCapture || typeof what !== 'function')
                this.given[1] = argsOf(this._data.map(untagged));
            this._data = this._data.map(value => value instanceof Argument && !(value instanceof Tensor) ? value : value instanceof Scalar ? value.value : value);
        }
        this.given[2] = configOf(this.given[2]);
    }

    // The callback of the library. plain: what looks after how functions of this kind are called.
    callback(plain) {
        if (typeof this._what !== 'function')
            return this._what;
        const call = plain(this._what);
        return (...given) => {
            try {
                return call(...this._data === undefined ? given : [given[0], ...this._data]);
            } catch (thrown) {
                this._thrown = {thrown, error: errorOf(thrown)};
                throw this._thrown.error;
            }
        };
    }

    // What was thrown here, if the run has ended with that.
    original(error) {
        return this._thrown !== null && this._thrown.error.message === error.message ? this._thrown.thrown : error;
    }

    end() {
        this._copies?.takeBack();
    }
}

function takeData(Pto, plain) {
    const where = Pto.Worker.prototype, {run, run_async, capture} = where;

    for (const [name, original] of Object.entries({run, capture})) {
        where[name] = function (what, ...rest) {
            const one = new Run(what, rest, name === 'capture');
            try {
                return original.call(this, one.callback(plain), ...one.given.slice(1));
            } catch (error) {
                throw one.original(error);
            } finally {
                if (name === 'run')
                    one.end();
            }
        };
    }
    where.run_async = function (what, ...rest) {
        if (typeof rest.at(-1) === 'function') // as in C: with a callback
            return run_async.call(this, what, ...rest);
        const one = new Run(what, rest, false);
        return run_async.call(this, one.callback(plain), ...one.given.slice(1)).catch(error => {
            throw one.original(error);
        }).finally(() => one.end());
    };
    // Closed at the end, however that comes, and whether it comes now or is promised.
    where.use = function (func) {
        if (typeof func !== 'function')
            throw new TypeError(_('%s: %s is not a function', 'use', shown(func)));
        let result;
        try {
            result = func(this);
        } catch (error) {
            this.close();
            throw error;
        }
        if (typeof result?.then === 'function') {
            return Promise.resolve(result).finally(() => this.close_async());
        }
        this.close();
        return result;
    };
}

// Of numbers, what is least and most: GJS wraps around what is less, and rounds.
const limits = {
    device_id: [0, 2 ** 32 - 1],
    heap_ring_size: [0, Number.MAX_SAFE_INTEGER],
    level: [0, 2 ** 32 - 1],
    n_sub_workers: [0, 2 ** 32 - 1],
    progress_interval: [1, 2 ** 31 - 1],
    sub_workers: [0, 2 ** 32 - 1],
};

function checkProperty(field, value) {
    const name = field.replaceAll('-', '_').replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`);
    const [least, most] = limits[name] ?? [0, Infinity];
    if (most < Infinity && (!Number.isSafeInteger(value) || value < least || value > most)) {
        throw new TypeError(Number.isSafeInteger(value) ? _('%s: %s is not an integer of %s to %s', `Pto.Worker: ${field}`, value, least, most)
            : _('%s: %s is not an integer', `Pto.Worker: ${field}`, shown(value)));
    }
}

function enumOf(type, field, value) {
    if (typeof value !== 'string')
        return value;
    const found = type[value.toUpperCase().replaceAll('-', '_')];
    if (found === undefined) {
        const names = Object.keys(type).map(name => name.toLowerCase().replaceAll('_', '-'));
        throw new TypeError(_('%s: %s is none of %s', `Pto.Worker: ${field}`, shown(value), names.join(', ')));
    }
    return found;
}

// As in Python: a number, a switch or, of rings, four sizes are the text that stands for them.
function parameterText(name, value) {
    const {N_RINGS} = imports.gi.Pto;
    if (Array.isArray(value)) {
        if (value.length === 1) // of any other length the library says the same
            throw new TypeError(_('the parameter %s: %s: one value is wanted, or of rings a list of %s sizes, one for each', name, shown(value), N_RINGS));
        return value.join();
    }
    if (!['bigint', 'boolean', 'number', 'string'].includes(typeof value))
        throw new TypeError(_('the parameter %s: %s is no number, switch or text', name, shown(value)));
    return String(typeof value === 'boolean' ? Number(value) : value);
}

function takeParameters(where) {
    const {set_parameter} = where;
    where.set_parameter = function (name, value, ...more) {
        return set_parameter.call(this, name, parameterText(name, value), ...more);
    };
}

// A parameter's value as text, and why a new worker of that level refuses it, if it does.
function asParameter(level, parameter, value) {
    const {Worker} = imports.gi.Pto;
    try {
        const text = parameterText(parameter, value);
        (level === undefined ? new Worker() : new Worker({level})).set_parameter(parameter, text);
        return {text};
    } catch (error) {
        return {refusal: error.message};
    }
}

// "; did you mean ...?" for a property of a Worker that is none: only what such a worker takes.
function nearestOfWorker(Pto, name, properties, given) {
    const there = GObject.Object.list_properties.call(Pto.Worker).filter(each => each.flags & GObject.ParamFlags.WRITABLE)
        .map(each => each.get_name().replaceAll('-', '_')).concat('devices', 'sub_workers').filter(each => !(each in given));
    const parameters = new Map(Pto.Worker.list_parameters().filter(each => each !== 'isolate')
        .map(each => [each, asParameter(properties.level, each, properties[name])]).filter(([, {text}]) => text !== undefined));
    const found = findNearest(name, [...parameters.keys(), ...there]);
    return !parameters.has(found) ? nearest(name, there)
        : _("; did you mean the parameter: after this, worker.set_parameter('%s', '%s')?", found, parameters.get(found).text);
}

// devices: 2 or [0, 1], sub_workers: 1, choices by their names.
function takeProperties(Pto) {
    const where = Pto.Worker.prototype, {_init} = where;
    where._init = function (given = {}) {
        if (!isPlain(given))
            throw new TypeError(_('%s: %s is no object of properties, as %s is', 'Pto.Worker', shown(given), "{platform: 'a2a3sim'}"));
        for (const [field, value] of Object.entries(given))
            checkProperty(field, value);
        const {devices, sub_workers, ...properties} = given;
        const n = Array.isArray(devices) ? devices.length : devices;
        if (n !== undefined) {
            if (!Number.isInteger(n) || n < 0 || n > Pto.MAX_CHILDREN)
                throw new TypeError(_('%s: %s: a number of them, 0 to %s, or a list is wanted', 'Pto.Worker: devices', shown(devices), Pto.MAX_CHILDREN));
            const ids = Array.isArray(devices) ? devices : [...new Array(n).keys()];
            if (ids.some(id => !Number.isInteger(id) || id < 0))
                throw new TypeError(_('%s: [%s] is not a list of numbers of devices', 'Pto.Worker: devices', ids.map(shown).join(',')));
            properties.device_ids = new GLib.Variant('au', ids);
        }
        if (sub_workers !== undefined)
            properties.n_sub_workers = sub_workers;
        for (const [field, type] of [['child_mode', Pto.ChildMode], ['restart', Pto.Restart]]) {
            if (field in properties)
                properties[field] = enumOf(type, field, properties[field]);
        }
        const parameter = Object.keys(properties).find(name => name !== 'isolate' && Pto.Worker.list_parameters().includes(name.replaceAll('_', '-')));
        if (parameter !== undefined) {
            const name = parameter.replaceAll('_', '-'), {text, refusal} = asParameter(properties.level, name, properties[parameter]);
            throw new TypeError(refusal === undefined
                ? _("%s: %s is a parameter: after this, worker.set_parameter('%s', '%s')", 'Pto.Worker', parameter, name, text)
                : _('%s: %s is a parameter: %s', 'Pto.Worker', parameter, refusal));
        }
        const there = GObject.Object.list_properties.call(Pto.Worker).map(each => each.get_name().replaceAll('-', '_'));
        const unknown = Object.keys(properties).find(name => !there.includes(name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`).replaceAll('-', '_')));
        if (unknown !== undefined)
            throw new TypeError(_('Pto.Worker has no property %s', unknown) + nearestOfWorker(Pto, unknown, properties, given));
        _init.call(this, properties);
    };
    for (const field of ['progress_interval', 'progressInterval', 'progress-interval']) {
        Object.defineProperty(where, field, {
            configurable: true,
            get() {
                return this.get_progress_interval();
            },
            set(value) {
                checkProperty(field, value);
                this.set_progress_interval(value);
            },
        });
    }
}

// What is wanted in place of a function, by what takes it. Asked when GJS has refused it.
var isCallableWanted = /^(register|register_on|register_async|submit|submit_mixed|submit_group|submit_group_members|add_task|add_mixed|add_group|add_reduction_kernel|predict|add_time)$/;
var isHandleWanted = /^(submit_sub|submit_sub_group|submit_next_level|submit_next_level_group|unregister|run_callable|run_callable_async)$/;

function insteadOf(method) {
    if (isHandleWanted.test(method))
        return _('a function is not registered: worker.register(callable) gives the handle that is wanted, of what Pto.SubFunction.new(name, function) ' +
            'or Pto.OrchestrationFunction.new(name, function) makes');
    if (/^register/.test(method))
        return _('a function is no callable: Pto.OrchestrationFunction.new(name, function) makes one for workers of level 3 and up, ' +
            'Pto.SubFunction.new(name, function) one for SUB workers, Pto.Callable.kernel(path) a kernel');
    return _('a function is no kernel: Pto.Callable.kernel(path) makes one');
}

// register(callable, {workers: [0, remote]}): only those of the workers below it, by their ids or themselves.
function takeTargets(Pto) {
    const where = Pto.Worker.prototype, {register} = where;
    where.register = function (callable, ...rest) {
        const {workers} = takeOptions('Pto.Worker.register', rest, ['workers']);
        if (workers === undefined || workers === null)
            return register.call(this, callable, ...rest);
        const ids = [workers].flat().map(worker => {
            if (!(worker instanceof Pto.Worker))
                return worker;
            if (callable instanceof Pto.Callable && callable.get_kind() === Pto.CallableKind.SUB) {
                throw new TypeError(_('Pto.Worker.register: %s is no SUB worker, and "%s" is for those: workers names them by their numbers. ' +
                    'What is registered on %s itself is for the SUB workers below that', worker.dup_path(), callable.get_name(), worker.dup_path()));
            }
            return idBelow('Pto.Worker.register', this, worker);
        });
        if (ids.length === 0)
            throw new TypeError(_('Pto.Worker.register: an empty list of workers would register it nowhere: leave workers out for all'));
        return this.register_on(callable, ids, ...rest);
    };
}

function takeCallables(Pto) {
    Pto.Callable.kernel = (path, options = {}) => {
        if (!isPlain(options))
            throw new TypeError(_("%s: %s is no object of options, as {core: 'aiv', args: 3} is", 'Pto.Callable.kernel', shown(options)));
        const {core = 'aiv', args = null, include_dirs = null, flags = null, cost = null} = takeOptions('Pto.Callable.kernel', [options],
            ['core', 'args', 'include_dirs', 'flags', 'cost']);
        const type = typeof core === 'string' ? Pto.CoreType[core.toUpperCase()] : core;
        if (!Object.values(Pto.CoreType).includes(type))
            throw new TypeError(_('%s: there is no such type of core: %s: it is "aic" or "aiv"', path, shown(core)));
        const kernel = Pto.Kernel.new(type, path, null);
        for (const [set, value] of [['n_args', args], ['include_dirs', include_dirs], ['compiler_flags', flags], ['cost', cost]]) {
            if (value !== null)
                kernel[`set_${set}`](value);
        }
        return kernel;
    };
    Pto.Callable.chip = directory => Pto.ChipOrchestration.new_for_directory(directory);
}
