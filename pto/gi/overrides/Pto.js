// Pto.js: what does JavaScript expect of the library beyond what its introspection data gives?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Plain functions as orchestrations, promises, attributes, and what is refused; typed arrays, arguments and submits are in the files
// beside this one. What works through plain GJS works here, too.
const {Gio, GLib, GObject} = imports.gi;
const {isPlain, takeNumbers, takeTags} = imports.overrides.PtoArguments;
const {bytes, bytesOf, integerOf, integers} = imports.overrides.PtoChecks;
const {takeGraphs} = imports.overrides.PtoGraphs;
const {takeMirrors} = imports.overrides.PtoMirrors;
const {takeRemotes} = imports.overrides.PtoRemote;
const {insteadOf, isCallableWanted, isHandleWanted, takeCallables, takeData, takeParameters, takeProperties, takeTargets} = imports.overrides.PtoRuns;
const {N_, _, nearest, shown} = imports.overrides.PtoText;

const types = ['Buffer', 'CallConfig', 'Callable', 'CallableHandle', 'ChipOrchestration', 'ClusterFile', 'DeviceCode', 'Exception', 'Graph', 'ImportedFunction',
    'Kernel', 'OrchestrationFunction', 'Orchestrator', 'Platform', 'RunStatistics', 'SubFunction', 'TaskArgs', 'Tensor', 'Trace',
    'TraceCore', 'TraceEdge', 'TraceTask', 'Worker'];

function refuseLater(func, what) {
    const name = func.name === '' ? _('the function') : `"${func.name}"`;
    throw new TypeError(_('%s %s, which does nothing by itself: an orchestration or SUB function is a plain function ' +
        'that does its work before it returns, without async, await and yield', name, what));
}

// Of the program that submits, or adds a task to a graph: records and errors name it.
const [here] = new Error().stack.match(/@.*\/(?=Pto\.js:)/) ?? ['@?'];
function notePlace(of) {
    const frame = new Error().stack.split('\n').find(line => line.includes('@') && !line.includes(here));
    const [, file, line] = frame?.match(/@(.*):(\d+):\d+$/) ?? [];
    of.set_place(file ?? null, Number(line ?? 0));
}

// In the function of an orchestrator: whether somebody looks at where it submits. Asked once, a call costs much of a submit.
let isNoting = false;

// Which calls note their place, an orchestrator's where somebody looks at it: a stack costs as much as two submits.
const noted = {
    Graph: /^add_(task|mixed|group|order)$/,
    Orchestrator: /^(submit.*|allocate_cluster|[gs]et_element|alloc|fill|fill_after|(begin|with)_(manual_)?scope)$/,
};

// Only false means that it has failed.
function plain(func) {
    if (typeof func !== 'function')
        return func;
    const kind = Object.prototype.toString.call(func).slice(8, -1);
    if (kind !== 'Function')
        refuseLater(func, _('is of the kind %s: calling it gives a promise or an iterator', kind));
    return (...args) => {
        const before = isNoting;
        let result;
        if (args[0] instanceof imports.gi.Pto.Orchestrator)
            isNoting = args[0].needs_place();
        try {
            result = func(...args);
        } finally {
            isNoting = before;
        }
        if (result !== null && typeof result === 'object' &&
            (typeof result.then === 'function' || typeof result.next === 'function'))
            refuseLater(func, typeof result.then === 'function' ? _('has returned a promise') : _('has returned an iterator'));
        return result !== false;
    };
}

function takePlainFunction(where, name, index) {
    const original = where[name];
    where[name] = function (...args) {
        args[index] = plain(args[index]);
        return original.apply(this, args);
    };
}

// GJS notes the callback of a call in what belongs to the function that is called, not to the call. A second call of it inside the
// first one's callback overwrites that note: then the inner callback is freed twice, which damages memory, and the outer one never.
// So a function that calls its callback before it returns is not called inside itself.

// A scope inside a scope: without a callback that C calls.
function scopeWithoutCallback(where) {
    const open = new WeakMap(); // orchestrator -> how many scopes
    const {begin_scope, begin_manual_scope, end_scope} = where;
    const count = orchestrator => open.get(orchestrator) ?? 0;
    const counted = begin => function () {
        const result = begin.call(this);
        open.set(this, count(this) + 1);
        return result;
    };

    where.begin_scope = counted(begin_scope);
    where.begin_manual_scope = counted(begin_manual_scope);
    where.end_scope = function () {
        open.set(this, Math.max(count(this) - 1, 0)); // also in a run that has failed
        return end_scope.call(this);
    };
    const within = (name, begin) => function (func) {
        const call = plain(func), before = count(this);
        if (typeof call !== 'function')
            throw new TypeError(_('%s: %s is not a function', name, shown(func)));
        this[begin]();
        try {
            if (!call(this)) {
                throw new imports.gi.Pto.Error({
                    code: imports.gi.Pto.Error.EXPLICIT,
                    message: _('the function of a scope failed and did not say why: it has returned false'),
                });
            }
        } catch (error) {
            while (count(this) > before) {
                try {
                    this.end_scope();
                } catch { // what was thrown first says why
                }
            }
            throw error;
        }
        while (count(this) > before)
            this.end_scope();
        return true;
    };
    where.with_scope = within('with_scope', 'begin_scope');
    where.with_manual_scope = within('with_manual_scope', 'begin_manual_scope');
}

// GJS keeps the function that a call is given with the called one, and frees it twice where that is called inside of itself. So
// a run inside the function of another worker's is an asynchronous one, in a main context that is for nothing else.
function runWithoutNesting(Pto) {
    const where = Pto.Worker.prototype, {run, run_async} = where;
    const running = []; // workers, the innermost last

    const runInside = (worker, func, args = null, config = null, cancellable = null) => {
        const context = GLib.MainContext.new();
        let result = null;
        context.push_thread_default();
        try {
            run_async.call(worker, func, args, config, cancellable, (_, done) => (result = done));
            while (result === null)
                context.iteration(true);
        } finally {
            context.pop_thread_default();
        }
        return worker.run_finish(result);
    };

    where.run = function (func, ...rest) {
        if (func instanceof Pto.Graph)
            return this.run_graph(func, ...rest);
        if (func instanceof Pto.CallableHandle)
            return this.run_callable(func, ...rest);
        const inside = running.length > 0;
        if (running.includes(this)) {
            throw new Pto.Error({
                code: Pto.Error.BUSY,
                message: _('an orchestration function can not use its own worker for another run'),
            });
        }
        running.push(this);
        try {
            return inside ? runInside(this, func, ...rest) : run.call(this, func, ...rest);
        } finally {
            running.pop();
        }
    };

    // A capture has no twin.
    const {capture} = where;
    let isCapturing = false;
    where.capture = function (...args) {
        if (args[0] instanceof Pto.CallableHandle)
            return this.capture_callable(...args);
        if (isCapturing) {
            throw new Pto.Error({
                code: Pto.Error.BUSY,
                message: _('a capture can not begin inside the function of another one: make it before, or behind'),
            });
        }
        isCapturing = true;
        try {
            return capture.apply(this, args);
        } finally {
            isCapturing = false;
        }
    };
}

// GJS makes 2 of 2.5 and 1 of true, and drops what comes behind the last argument.
function isInexact(value, isSwitch) {
    return (typeof value === 'number' && !Number.isInteger(value)) || (typeof value === 'boolean' && !isSwitch);
}

// Which argument is a choice, or a list of them: GJS takes the first one, 0, for what is no number.
const choices = {
    'Costs.add_time': [1, 'Clock'],
    'Costs.dup_cost': [1, 'Clock'],
    'Dtype.get_size': [0, 'Dtype'],
    'Graph.add_argument': [0, 'Dtype'],
    'Graph.make_tensor': [0, 'Dtype'],
    'ImportedFunction.new': [0, 'CallableKind'],
    'ImportedFunction.new_for_symbol': [0, 'CallableKind'],
    'Kernel.new': [0, 'CoreType'],
    'Kernel.set_signature': [0, 'Direction'],
    'Orchestrator.alloc': [0, 'Dtype'],
    'Orchestrator.allreduce': [1, 'Reduction'],
    'Orchestrator.dup_cluster_cores': [1, 'CoreType'],
    'Orchestrator.make_tensor': [0, 'Dtype'],
    'Orchestrator.make_tensor_at': [1, 'Dtype'],
    'Platform.get_cores_per_cluster': [0, 'CoreType'],
    'RunStatistics.get_busy_ns': [0, 'CoreType'],
    'RunStatistics.get_waited_ns': [0, 'CoreType'],
    'RunStatistics.get_n_cores': [0, 'CoreType'],
    'RunStatistics.get_utilization': [0, 'CoreType'],
    'TaskArgs.add_reduction': [1, 'Reduction'],
    'TaskArgs.add_tensor': [1, 'Direction'],
    'Tensor.new': [0, 'Dtype'],
    'Tensor.new_external': [1, 'Dtype'],
    'Tensor.new_for_buffer': [2, 'Dtype'],
    'Tensor.new_for_bytes': [2, 'Dtype'],
    'Tensor.new_for_object': [1, 'Dtype'],
    'Trace.describe': [0, 'TraceTopic'],
    'Trace.describe_json': [0, 'TraceTopic'],
    'Worker.ask_process': [1, 'AnswerFormat'],
};

// Which arguments are lists of sizes or places, and what they are called.
const lists = {
    'Graph.add_argument': [[1, 'shape']],
    'Graph.make_tensor': [[1, 'shape']],
    'Orchestrator.alloc': [[1, 'shape']],
    'Orchestrator.fill_after': [[2, 'after']],
    'Orchestrator.get_element': [[1, 'index']],
    'Orchestrator.make_tensor': [[1, 'shape']],
    'Orchestrator.make_tensor_at': [[2, 'shape']],
    'Orchestrator.set_element': [[1, 'index']],
    'TaskArgs.set_condition': [[1, 'index']],
    'Tensor.as_strided': [[0, 'shape'], [1, 'strides']],
    'Tensor.new': [[1, 'shape']],
    'Tensor.new_external': [[2, 'shape']],
    'Tensor.new_for_buffer': [[3, 'shape']],
    'Tensor.new_for_bytes': [[3, 'shape']],
    'Tensor.new_for_object': [[2, 'shape']],
    'Tensor.reshape': [[0, 'shape']],
    'Tensor.view': [[0, 'shape'], [1, 'offsets']],
};

// GJS makes 2 ** 64 - 1 of -1, another number of one that it can not hold, and 0 of what is none.
function checkNumbers(where_to, values, areAll = false) {
    const wrong = values.findIndex(value => typeof value === 'number' ? value < 0 || value > Number.MAX_SAFE_INTEGER
        : areAll && typeof value !== 'bigint');
    if (wrong >= 0)
        throw new TypeError(_('%s: %s is not an integer of 0 to 2 ** 53 - 1', where_to, shown(values[wrong])));
}

function checkList(where_to, values) {
    if (ArrayBuffer.isView(values))
        return;
    if (!Array.isArray(values))
        throw new TypeError(_('%s: %s is not a list of integers', where_to, shown(values)));
    for (const value of values) {
        if (isInexact(value) || typeof value === 'string')
            throw new TypeError(typeof value === 'string' ? _('%s: a text is not an integer', where_to) : _('%s: %s is not an integer', where_to, value));
    }
    checkNumbers(where_to, values, true);
}

// What may be left out behind the first so many arguments, and what is meant then.
const optional = {
    'DeviceCode.build': [0, null],
    'DeviceCode.build_async': [0, null],
    'Graph.add_mixed': [3, null],
    'Graph.add_order': [0, null],
    'Graph.add_task': [1, null],
    'Kernel.new': [2, null],
    'Orchestrator.submit': [1, null],
    'Orchestrator.submit_group': [1, null],
    'Orchestrator.submit_group_members': [2, null],
    'Orchestrator.submit_mixed': [3, null],
    'Orchestrator.submit_next_level': [1, null, null, -1],
    'Orchestrator.submit_next_level_group': [2, null, null],
    'Orchestrator.submit_order': [0, null],
    'Orchestrator.submit_sub': [1, null, -1],
    'Orchestrator.submit_sub_group': [2, null],
    'Worker.capture': [1, null, null, null],
    'Worker.capture_callable': [1, null, null, null],
    'Worker.register': [1, null],
    'Worker.register_on': [2, null],
    'Worker.register_async': [1, null],
    'Worker.run': [1, null, null, null],
    'Worker.run_async': [1, null, null, null],
    'Worker.run_callable': [1, null, null, null],
    'Worker.run_callable_async': [1, null, null, null],
    'Worker.run_graph': [1, null, null, null],
    'Worker.run_graph_async': [1, null, null, null],
    'Worker.start': [0, null],
    'Worker.start_async': [0, null],
};

// The callback of an asynchronous call, which the promise adds, comes last.
function fillUp(args, [least, ...rest], hasCallback) {
    const given = args.length - hasCallback;
    if (given >= least && given < least + rest.length)
        args.splice(given, 0, ...rest.slice(given - least));
}

function isFunctionRefused(method, args, error) {
    return (isCallableWanted.test(method) || isHandleWanted.test(method)) && /^Object 0x.* is not a subclass of/.test(error.message) &&
        args.flat().some(arg => typeof arg === 'function');
}

function exact(name, where, method) {
    const original = where[method], where_to = `Pto.${name}.${method}`;
    const [choice, type] = choices[`${name}.${method}`] ?? [Infinity], isNullable = method === 'set_signature';
    const listed = lists[`${name}.${method}`] ?? [], isOfAny = /_group(_members)?$/.test(method); // -1: any worker, any core
    const whole = integers[`${name}.${method}`] ?? [], raw = bytes[`${name}.${method}`] ?? [];
    const isFraction = /^(add_scalar_(float|double)|add_time|set_element|add_reduction_kernel|fill|fill_after)$/.test(method), isSwitch = /^set_(enable_|sync_start)/.test(method);
    const isNoted = where !== imports.gi.Pto[name] && (noted[name]?.test(method) ?? false);
    const isNotedAlways = isNoted && name === 'Graph';
    const {length} = original; // whose getter costs a tenth of a call
    const left = optional[`${name}.${method}`], hasCallback = method.endsWith('_async') ? 1 : 0;
    const areTexts = ['add_remote_job', 'set_include_dirs', 'set_compiler_flags', 'predict', 'predict_json', 'simulate'].includes(method);
    const check = value => {
        if (isInexact(value, isSwitch))
            throw new TypeError(_('%s: %s is not an integer', where_to, value));
    };
    const checked = function (...args) {
        if (args.length !== length && left !== undefined)
            fillUp(args, left, hasCallback);
        if (args.length > length)
            throw new TypeError(_('%s takes %s arguments, but %s are given', where_to, length, args.length));
        const chosen = args.length > choice && !(isNullable && args[choice] === null) ? [args[choice]].flat() : [];
        const wrong = chosen.findIndex(value => !Number.isInteger(value) || !Object.values(imports.gi.Pto[type]).includes(value));
        if (wrong >= 0)
            throw new TypeError(_('%s: %s is none of Pto.%s', where_to, shown(chosen[wrong]), type));
        for (const [i, what] of whole) {
            if (args.length > i)
                args[i] = integerOf(`${where_to}: ${what}`, args[i], isSwitch);
        }
        for (const [i, what] of raw) {
            if (args.length > i)
                args[i] = bytesOf(`${where_to}: ${what}`, args[i]);
        }
        for (const [i, what] of listed) {
            if (args.length > i)
                checkList(`${where_to}: ${what}`, args[i]);
        }
        for (const value of isFraction ? [] : args) {
            check(value);
            if (!Array.isArray(value) || areTexts)
                continue;
            value.forEach(check);
            if (value.some(element => typeof element === 'string'))
                throw new TypeError(_('%s: a text is not an integer', where_to));
            if (!isOfAny)
                checkNumbers(where_to, value);
        }
        if (isNoting ? isNoted : isNotedAlways)
            notePlace(this);
        try {
            return original.apply(this, args);
        } catch (error) {
            if (isFunctionRefused(method, args, error))
                throw new TypeError(`${where_to}: ${insteadOf(method)}`);
            if (/^(Argument|Array element|Cannot convert|Could not guess|Expected|Object 0x)/.test(error.message))
                throw new TypeError(`${where_to}: ${error.message}`);
            throw error;
        }
    };
    where[method] = Object.defineProperty(checked, 'length', {value: length});
}

function exactAll(name, type) {
    for (const where of [type, type.prototype]) {
        for (const method of Object.getOwnPropertyNames(where)) {
            const {value} = Object.getOwnPropertyDescriptor(where, method);
            if (typeof value === 'function' && method !== 'constructor')
                exact(name, where, method);
        }
    }
}

// Directories of one, or of a list; words of one text, or of a list.
function takeOneOrMore(where) {
    const {set_include_dirs, set_compiler_flags} = where;
    const words = text => text.trim() === '' ? [] : GLib.shell_parse_argv(text)[1];
    where.set_include_dirs = function (dirs) {
        set_include_dirs.call(this, typeof dirs === 'string' ? [dirs] : dirs);
    };
    where.set_compiler_flags = function (flags) {
        set_compiler_flags.call(this, typeof flags === 'string' ? words(flags) : flags);
    };
    // Properties of these names could only warn of what is refused.
    for (const field of ['include_dirs', 'compiler_flags']) {
        Object.defineProperty(where, field, {
            configurable: true,
            get() {
                return this[`get_${field}`]();
            },
            set(value) {
                this[`set_${field}`](value);
            },
        });
    }
}

// An argument of a graph is named where it is added.
function nameArguments(where) {
    for (const add of ['add_argument', 'add_scalar_argument']) {
        const original = where[add], {length} = original;
        where[add] = function (...args) {
            const [name, ...more] = args.splice(length);
            const added = original.apply(this, [...args, ...more]);
            if (name !== undefined && name !== null)
                this.set_argument_name(this.get_n_arguments() - 1, name);
            return added;
        };
    }
}

// Nor is a text a number, or what is missing.
function takeNumber(where, name, refusal, isWanted, most) {
    const original = where[name];
    where[name] = function (...args) {
        if (args.length > 0 && !isWanted(args[0]))
            throw new TypeError(_(refusal, name, shown(args[0]), most));
        return original.apply(this, args);
    };
}

// A clock also by its name.
function takeClocks(Pto) {
    const where = Pto.Costs.prototype;
    for (const name of ['add_time', 'dup_cost']) {
        const original = where[name];
        where[name] = function (kernel, clock, ...rest) {
            const member = typeof clock === 'string' ? Pto.Clock[clock.toUpperCase()] : clock;
            if (!Object.values(Pto.Clock).includes(member))
                throw new TypeError(_('%s: %s is none of Pto.%s', `Pto.Costs.${name}`, shown(clock), 'Clock'));
            return original.call(this, kernel, member, ...rest);
        };
    }
}

// A topic also by its name; a task also by its label, or as one of the list.
function takeQuestions(Pto) {
    const where = Pto.Trace.prototype;
    for (const name of ['describe', 'describe_json']) {
        const original = where[name];
        where[name] = function (topic) {
            const member = typeof topic === 'string' ? Pto.TraceTopic[topic.toUpperCase().replaceAll('-', '_')] : topic;
            if (member === undefined)
                throw new TypeError(_('%s: %s is none of Pto.%s', `Pto.Trace.${name}`, shown(topic), 'TraceTopic'));
            return original.call(this, member);
        };
    }
    for (const name of ['explain', 'explain_json']) {
        const original = where[name];
        const explain = function (task) {
            if (task instanceof Pto.TraceTask)
                return original.call(this, task.dup_label());
            if (typeof task !== 'string' && typeof task !== 'bigint' && !Number.isSafeInteger(task)) {
                throw new TypeError(_('%s: %s is no task: a number, a BigInt or a text is one, 17, "1:17", ' +
                    'or "7/1:17" inside of task 7', `Pto.Trace.${name}`, shown(task)));
            }
            return original.call(this, String(task));
        };
        where[name] = explain;
        where[name.replace('explain', 'explain_task')] = explain;
    }
}

// The library gives 0 or nothing for what is behind the last one.
function takeIndex(where, name, bound) {
    const original = where[name];
    where[name] = function (index, ...rest) {
        const n = bound(this);
        if (!Number.isInteger(index) || index < 0 || index >= n)
            throw new RangeError(_('%s: %s is none of the %s, which count from 0', name, shown(index), n));
        return original.call(this, index, ...rest);
    };
}

function takeIndices(Pto) {
    const indexed = [
        [Pto.TaskArgs, 'get_', ['direction', 'tensor', 'scalar', 'scalar_kind', 'scalar_double', 'scalar_value'], args => args.get_n_args()],
        [Pto.RunStatistics, 'get_', ['last_task_alive', 'ring_tasks', 'heap_peak'], () => Pto.N_RINGS],
        [Pto.RunStatistics, 'get_', ['busy_ns', 'waited_ns', 'n_cores', 'utilization'], () => 2], // types of cores
        [Pto.ClusterFile, 'dup_', ['name', 'address', 'command'], file => file.get_n_places()],
        [Pto.Trace, '', ['dup_core_name', 'get_core_utilization'], trace => trace.get_n_cores()],
    ];
    for (const [type, prefix, names, bound] of indexed) {
        for (const name of names)
            takeIndex(type.prototype, prefix + name, bound);
    }
}

// A form also by its name; what a worker does as an object, or null where there is nothing to tell.
function takeAsking(Pto) {
    const {ask_process} = Pto.Worker;
    Pto.Worker.ask_process = function (...given) {
        // Nothing is this process; something that is not known is nobody.
        const [process = given.length === 0 ? 0 : NaN, format = 'text', cancellable = null] = given;
        const member = typeof format === 'string' ? Pto.AnswerFormat[format.toUpperCase()] : format;
        if (!Number.isSafeInteger(process) || process < 0)
            throw new TypeError(_('%s: %s is the number of no process', 'Pto.Worker.ask_process', shown(given[0])));
        if (!Object.values(Pto.AnswerFormat).includes(member))
            throw new TypeError(_('%s: %s is none of Pto.%s', 'Pto.Worker.ask_process', shown(format), 'AnswerFormat'));
        return ask_process.call(this, process, member, cancellable);
    };
    Object.defineProperty(Pto.Worker.prototype, 'progress', {
        configurable: true,
        get() {
            const [isRunning, done, submitted, failed] = this.get_progress();
            return isRunning ? {done, submitted, failed} : null;
        },
    });
    Object.defineProperty(Pto.Worker.prototype, 'doing', {
        configurable: true,
        get() {
            return JSON.parse(this.describe_state_json()).workers[0] ?? null;
        },
    });
}

// GJS knows the interface of what is given, not its type.
function makeIterable(where, name) {
    const original = where[name];
    where[name] = function (...args) {
        const list = original.apply(this, args);
        list[Symbol.iterator] = Gio.ListStore.prototype[Symbol.iterator];
        list.toString = function () {
            return `[${this.get_n_items()} of ${GObject.type_name(this.get_item_type()).replace('Pto', 'Pto.')}]`;
        };
        return list;
    };
}

// Getters and setters as attributes, and no other names: one that is misspelt would be accepted and have no effect.
function close(name, prototype, isDerived) {
    for (const getter of Object.getOwnPropertyNames(prototype)) {
        const field = /^(get|dup|ref)_/.test(getter) ? getter.slice(4) : '';
        if (field === '' || field in prototype || prototype[getter].length > 0)
            continue;
        const setter = `set_${field}`;
        Object.defineProperty(prototype, field, {
            configurable: true,
            get() {
                return this[getter]();
            },
            set: setter in prototype ? function (value) {
                this[setter](value);
            } : undefined,
        });
    }
    if (isDerived) // from one that refuses them
        return;
    Object.setPrototypeOf(prototype, new Proxy(Object.getPrototypeOf(prototype), {
        set(target, field, value, receiver) {
            if (field in target)
                return Reflect.set(target, field, value, receiver);
            const there = Object.entries(Object.getOwnPropertyDescriptors(prototype)).filter(([, {set}]) => set !== undefined);
            throw new TypeError(_('%s does not exist', `Pto.${name}.${String(field)}`) + nearest(String(field), there.map(([each]) => each)));
        },
    }));
}

// new Pto.CallConfig({block_dim: 3}), as a Worker takes its properties. What GJS would look for are fields of a structure.
function takeFields(Pto) {
    Pto.CallConfig = new Proxy(Pto.CallConfig, {
        construct(target, [fields = {}]) {
            if (!isPlain(fields))
                throw new TypeError(_('%s: %s is no object of properties, as %s is', 'Pto.CallConfig', shown(fields), '{block_dim: 4}'));
            return Object.assign(new target(), fields);
        },
    });
}

function _init() {
    const Pto = this;

    GLib.quark_from_string('pto-javascript-override'); // or the library says, at the first type, that this file was not found
    Object.defineProperty(Pto.Error.prototype, 'name', {configurable: true, writable: true, value: 'Pto.Error'}); // as JavaScript's own have one
    for (const name of types.filter(type => 'to_string' in Pto[type].prototype)) {
        Pto[name].prototype.toString = function () {
            return `[Pto.${name}: ${this.to_string()}]`;
        };
    }
    for (const name of types)
        exactAll(name, Pto[name]);
    exact('Dtype', Pto.Dtype, 'get_size');
    takeMirrors(Pto);
    takeOneOrMore(Pto.DeviceCode.prototype);
    takeParameters(Pto.Worker.prototype);
    runWithoutNesting(Pto); // before run_async gives a promise
    for (const name of ['start', 'register', 'run', 'run_callable', 'run_graph', 'close'])
        Gio._promisify(Pto.Worker.prototype, `${name}_async`, `${name}_finish`);
    Gio._promisify(Pto.DeviceCode.prototype, 'build_async', 'build_finish');
    Gio._promisify(Pto, 'compile_shared_object_async', 'compile_shared_object_finish');
    Pto.Worker.prototype.init = Pto.Worker.prototype.start; // as the five design documents call it
    takePlainFunction(Pto.OrchestrationFunction, 'new', 1);
    takePlainFunction(Pto.SubFunction, 'new', 1);
    scopeWithoutCallback(Pto.Orchestrator.prototype);
    const {run_async} = Pto.Worker.prototype;
    Pto.Worker.prototype.run_async = function (func, ...rest) {
        return func instanceof Pto.Graph ? this.run_graph_async(func, ...rest)
            : func instanceof Pto.CallableHandle ? this.run_callable_async(func, ...rest) : run_async.call(this, func, ...rest);
    };
    takeQuestions(Pto);
    takeNumbers(Pto);
    takeIndices(Pto);
    takeClocks(Pto);
    takeAsking(Pto);
    takePlainFunction(Pto.Worker.prototype, 'run', 0);
    takePlainFunction(Pto.Worker.prototype, 'capture', 0);
    takePlainFunction(Pto.Worker.prototype, 'run_async', 0);
    nameArguments(Pto.Graph.prototype);
    const {get_element} = Pto.Orchestrator.prototype;
    Pto.Orchestrator.prototype.get_element = function (...args) {
        return get_element.apply(this, args).at(-1); // GJS gives the return value that is to be skipped, too
    };
    for (const name of ['list_cores', 'list_edges', 'list_tasks'])
        makeIterable(Pto.Trace.prototype, name);
    makeIterable(Pto.TraceTask.prototype, 'list_members');
    makeIterable(Pto.Worker.prototype, 'get_children');
    Object.defineProperty(Pto.Worker.prototype, 'children', {
        configurable: true,
        get() {
            return this.get_children();
        },
    });
    takeRemotes(Pto);
    const no_integer = N_('%s: %s is not an integer');
    for (const name of ['alloc_buffer', 'malloc'])
        takeNumber(Pto.Worker.prototype, name, N_('%s: %s is not a whole number of bytes'), value => typeof value === 'bigint' || Number.isInteger(value));
    for (const name of ['add_after', 'add_scalar', 'add_scalar_signed'])
        takeNumber(Pto.TaskArgs.prototype, name, no_integer, value => typeof value === 'bigint' || Number.isInteger(value));
    for (const type of [Pto.Graph, Pto.Orchestrator]) {
        takeNumber(type.prototype, 'set_priority', N_('%s: %s is not an integer of 0 to %s'),
            value => Number.isInteger(value) && value >= 0 && value < 2 ** 32, Pto.MAX_PRIORITY);
    }
    takeNumber(Pto.TaskArgs.prototype, 'set_block_dim', N_('%s: %s is not a whole number of blocks, 1 to %s'),
        value => Number.isInteger(value) && Math.abs(value) <= Pto.MAX_BLOCKS, Pto.MAX_BLOCKS);
    takeNumber(Pto.TaskArgs.prototype, 'set_sync_start', N_('%s: %s is not true or false'), value => typeof value === 'boolean');
    for (const [where, name] of [[Pto.TaskArgs, 'set_cluster'], [Pto.Orchestrator, 'free_cluster'], [Pto.Orchestrator, 'dup_cluster_cores']])
        takeNumber(where.prototype, name, N_('%s: %s is not the number of a cluster'), value => Number.isInteger(value) && Math.abs(value) < 2 ** 31);
    const {copy_to, export: exportPart} = Pto.Buffer.prototype;
    Pto.Buffer.prototype.export = function (offset = 0, size = this.get_size() - offset) {
        return exportPart.call(this, offset, size);
    };
    Pto.Buffer.prototype.copy_to = function (to, offset = 0, toOffset = 0, size = this.get_size() - offset) {
        return copy_to.call(this, to, offset, toOffset, size);
    };
    takeNumber(Pto.Kernel.prototype, 'set_n_args', no_integer, Number.isInteger);
    for (const name of Object.getOwnPropertyNames(Pto.CallConfig.prototype).filter(method => /^set_(?!output_prefix|dump_filter)/.test(method)))
        takeNumber(Pto.CallConfig.prototype, name, no_integer, value => Number.isInteger(value) || typeof value === 'boolean');
    for (const name of ['add_scalar_float', 'add_scalar_double'])
        takeNumber(Pto.TaskArgs.prototype, name, N_('%s: %s is not a number'), value => typeof value === 'number');
    takeTags(Pto);
    takeGraphs(Pto);
    takeCallables(Pto);
    takeTargets(Pto);
    takeData(Pto, plain);
    takeProperties(Pto);
    for (const name of types)
        close(name, Pto[name].prototype, Pto.Callable.prototype.isPrototypeOf(Pto[name].prototype));
    takeFields(Pto);
}
