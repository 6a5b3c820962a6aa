// PtoGraphs.js: how does JavaScript say what a graph is?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// To an orchestrator while it runs, or to a graph that is built first.
const {arrayOf, dtypeOf, makeArray, tensorOf} = imports.overrides.PtoArrays;
const {Argument, Task, isPlain, operatorOf, takeOptions, taskArgs, tasksOf} = imports.overrides.PtoArguments;
const {idBelow} = imports.overrides.PtoChecks;
const {addressOf, pullElement} = imports.overrides.PtoMirrors;
const {_, shown} = imports.overrides.PtoText;

const terms = ['after', 'when', 'block_dim', 'sync_start', 'cluster', 'priority'];

// Both orders: (dtype, shape) as in C, (shape, dtype) with float32 where nothing is said.
// One number alone is a shape, too, as in NumPy; where two are given the first is a type.
function typeAndShape([first, second, ...rest]) {
    if (typeof first === 'number' && !Array.isArray(second) && typeof second !== 'number')
        return typeAndShape([[first], second, ...rest]);
    if (second === undefined && !Array.isArray(first))
        throw new TypeError(_('%s: %s is not a list of integers, as [4] and [4, 4] are', 'shape', shown(first)));
    return Array.isArray(first) ? [dtypeOf(second ?? 'float32'), first, ...rest] : [dtypeOf(first), second, ...rest];
}

function takeTypes(where, name) {
    const original = where[name];
    where[name] = function (...args) {
        return original.apply(this, args.length === 0 ? args : typeAndShape(args));
    };
}

// Of one submit, instead of that of the orchestrator or graph.
function withPriority(of, {priority = null}, call) {
    if (priority === null)
        return call();
    const before = of.get_priority();
    of.set_priority(priority);
    try {
        return call();
    } finally {
        of.set_priority(before);
    }
}

// Submits of kernels: so many things first, then arguments, then options. What original gives, or the task.
function takeArguments(where, name, n_first, allowed, makeResult) {
    const original = where[name];
    where[name] = function (...given) {
        const first = given.splice(0, n_first);
        const options = takeOptions(name, given, allowed);
        const args = taskArgs(name, given, options);
        return withPriority(this, options, () => makeResult(this, original.call(this, ...first, args)));
    };
}

// Kernels with arguments of their own, on cores that are named, if somebody says so.
function takeGroups(where) {
    const {submit_group, submit_group_members} = where;
    where.submit_group = function (kernels, ...given) {
        const options = takeOptions('submit_group', given, ['after', 'when', 'args_list', 'cores', 'priority']);
        const {args_list = null, cores = null, after = [], when = null} = options;
        if (!Array.isArray(kernels))
            throw new TypeError(_('%s: %s is not a list of kernels', 'submit_group', shown(kernels)));
        if (args_list !== null && given.length > 0)
            throw new TypeError(_('submit_group: args_list has the arguments of each member, and there are some beside it: one or the other'));
        withPriority(this, options, () => {
            if (args_list === null && cores === null) {
                submit_group.call(this, kernels, taskArgs('submit_group', given, options));
                return;
            }
            const lists = members('submit_group', args_list ?? kernels.map(() => given), {after, when});
            submit_group_members.call(this, kernels, lists, cores === null ? null : cores.map((core, i) => coreOf(kernels[i], core, i)));
        });
        return new Task(this.get_last_task());
    };
}

// Of each member of a group. A group is one task: what one of its members says of that is said of all.
function members(where, args_list, {after = [], when = null}) {
    if (!Array.isArray(args_list))
        throw new TypeError(_('%s: %s is not a list of lists of arguments', where, shown(args_list)));
    return args_list.map((values, i) =>
        taskArgs(where, Array.isArray(values) ? [values] : [values], i === 0 ? {...tasksOf(after).length > 0 && {after}, ...when !== null && {when}} : {}) ?? new imports.gi.Pto.TaskArgs());
}

function coreOf(kernel, core, i) {
    if (core === null)
        return -1;
    if (typeof core !== 'string')
        return core;
    const {CoreType} = imports.gi.Pto;
    const type = Object.keys(CoreType).find(name => CoreType[name] === kernel?.core_type);
    const number = new RegExp(`^${type}(\\d+)$`).exec(core)?.[1];
    if (number === undefined)
        throw new TypeError(_("submit_group: cores: member %s is for %s: a core of its kernel's type is wanted, %s0 or a number", i, shown(core), type));
    return Number(number);
}

// To workers below: submit(handle, [x.read(), 2n], {worker: 0}), or as in C.
function takeLevel(where, name, allowed, order) {
    const original = where[name], isGroup = name.endsWith('_group'), isLevel = name.startsWith('submit_next_level');
    where[name] = function (handle, ...given) {
        const isOne = given.length === 0 || given[0] === null || given[0] === undefined || Array.isArray(given[0]) ||
            given[0] instanceof imports.gi.Pto.TaskArgs;
        if (isOne && given.length > 1 && !isPlain(given.at(-1))) { // as in C
            const [args, ...rest] = given;
            return original.call(this, handle, isGroup ? members(name, args, {}) : taskArgs(name, [args]), ...rest);
        }
        const options = takeOptions(name, given, allowed);
        const {after = [], ...others} = options;
        if (isLevel && others.worker instanceof imports.gi.Pto.Worker)
            others.worker = idBelow(name, this.get_worker(), others.worker);
        if (isLevel && Array.isArray(others.workers))
            others.workers = others.workers.map(one => idBelow(name, this.get_worker(), one));
        const {worker = null} = others;
        if (worker !== null && !(Number.isInteger(worker) && Math.abs(worker) < 2 ** 31))
            throw new TypeError(_('%s: worker: %s is not the id of a worker, a whole number', name, shown(worker)));
        const args = isGroup ? members(name, given[0], {after}) : taskArgs(name, given, {after});
        original.call(this, handle, args, ...order.map(([field, otherwise]) => others[field] ?? otherwise));
        return new Task(this.get_last_task());
    };
}

// The number at a place, or the first one. Integers of 64 bits are BigInts: each half is one that a Number holds.
function elementAt(get_element, orch, tensor, index) {
    const {Dtype, Tensor} = imports.gi.Pto, {INT64, UINT32, UINT64} = Dtype;
    const address = addressOf(tensor);
    if (![INT64, UINT64].includes(tensor.dtype) || address === 0)
        return get_element.call(orch, tensor, index);
    const [shape, strides] = [tensor.shape, tensor.strides];
    if (index.length !== shape.length || index.some((at, i) => !(at < shape[i])))
        return get_element.call(orch, tensor, index); // which says what is wrong
    const first = index.reduce((sum, at, i) => sum + at * strides[i], 0);
    const halves = Tensor.new_external(address + 8 * first, UINT32, [2]);
    const [low, high] = [0, 1].map(half => BigInt(get_element.call(orch, halves, [half])));
    return (tensor.dtype === INT64 ? BigInt.asIntN : BigInt.asUintN)(64, high << 32n | low);
}

function takeElements(where) {
    const {get_element, set_element, fill, fill_after} = where;
    where.get_element = function (what, index = null) {
        const tensor = tensorOf(what), at = typeof index === 'number' ? [index] : index ?? tensor.shape.map(() => 0);
        const value = elementAt(get_element, this, tensor, at);
        pullElement(tensor, at);
        return value;
    };
    where.set_element = function (what, ...given) {
        const tensor = tensorOf(what);
        if (given.length === 1 && !Array.isArray(given[0]))
            given.unshift(tensor.shape.map(() => 0));
        if (typeof given[0] === 'number')
            given[0] = [given[0]];
        const result = set_element.call(this, tensor, ...given);
        pullElement(tensor, given[0]);
        return result;
    };
    where.fill = function (what, ...given) {
        const {after = null} = takeOptions('fill', given, ['after']);
        const args = [tensorOf(what), ...given];
        if (after === null)
            fill.apply(this, args);
        else
            fill_after.call(this, ...args, tasksOf(after));
        return new Task(this.get_last_task());
    };
    where.fill_after = function (what, value, after, ...rest) {
        return fill_after.call(this, tensorOf(what), value, Array.isArray(after) ? after.map(task => task instanceof Task ? task.number : task) : after, ...rest);
    };
}

// Of what is like tensors, one for each worker. C has a list of them first, or two.
function takeCollectives(where) {
    for (const [name, n, otherwise, convert] of [
        ['allreduce', 1, ['sum'], operatorOf], ['alltoall', 2, []], ['barrier', 1, []], ['broadcast', 1, [0]],
    ]) {
        const original = where[name];
        where[name] = function (...given) {
            const lists = [...new Array(n).keys()].map(i => {
                if (!Array.isArray(given[i]))
                    throw new TypeError(_('%s: %s is not a list of tensors: give one for each worker', name, shown(given[i])));
                return given[i].map(what => tensorOf(what));
            });
            const rest = [...given.slice(n), ...otherwise.slice(Math.max(given.length - n, 0))];
            original.call(this, ...lists, ...convert === undefined ? rest : rest.map((value, i) => i === 0 ? convert(value) : value));
            return new Task(this.get_last_task());
        };
    }
}

// for (const inner of orch.scope()) { ... }: it ends however the body does.
function takeScopes(where) {
    for (const [name, begin] of [['scope', 'begin_scope'], ['manual_scope', 'begin_manual_scope']]) {
        where[name] = function* () {
            this[begin]();
            try {
                yield this;
            } finally {
                this.end_scope(); // what it throws behind a throw of the body is dropped by the loop
            }
        };
    }
}

function scratch(...given) {
    const {Direction, Tensor} = imports.gi.Pto;
    return new Argument(Tensor.new(...typeAndShape(given)), Direction.SCRATCH);
}

function takeGraphs(Pto) {
    const orchestrator = Pto.Orchestrator.prototype, graph = Pto.Graph.prototype;
    const submitted = of => new Task(of.get_last_task());
    const added = (_, task) => task;

    for (const name of ['alloc', 'make_tensor'])
        takeTypes(orchestrator, name);
    for (const name of ['add_argument', 'make_tensor'])
        takeTypes(graph, name);
    const {make_tensor_at} = orchestrator;
    orchestrator.make_tensor_at = function (worker, ...rest) {
        return make_tensor_at.call(this, idBelow('make_tensor_at', this.get_worker(), worker), ...typeAndShape(rest));
    };
    for (const where of [orchestrator, graph]) {
        where.tensor = where.make_tensor; // as in Python
        where.scratch = scratch;
    }
    takeArguments(orchestrator, 'submit', 1, terms, submitted);
    takeArguments(orchestrator, 'submit_mixed', 3, terms, submitted);
    takeArguments(orchestrator, 'submit_order', 0, ['after'], submitted);
    takeGroups(orchestrator);
    takeLevel(orchestrator, 'submit_next_level', ['after', 'config', 'worker'], [['config', null], ['worker', -1]]);
    takeLevel(orchestrator, 'submit_next_level_group', ['after', 'config', 'workers'], [['config', null], ['workers', null]]);
    takeLevel(orchestrator, 'submit_sub', ['after', 'worker'], [['worker', -1]]);
    takeLevel(orchestrator, 'submit_sub_group', ['after', 'workers'], [['workers', null]]);
    takeCollectives(orchestrator);
    takeElements(orchestrator);
    takeScopes(orchestrator);
    takeArguments(graph, 'add_task', 1, ['when', 'block_dim', 'sync_start', 'priority'], added);
    takeArguments(graph, 'add_mixed', 3, ['when', 'block_dim', 'sync_start', 'priority'], added);
    takeArguments(graph, 'add_order', 0, ['priority'], added);
    const {add_group} = graph;
    graph.add_group = function (kernels, args_list, ...given) {
        const options = takeOptions('add_group', given, ['when', 'priority']);
        return withPriority(this, options, () => add_group.call(this, kernels, members('add_group', args_list, {when: options.when}), ...given));
    };

    Pto.Buffer.array = makeArray;
    Pto.Tensor.of = tensorOf;
    Pto.Tensor.prototype.to_array = function () {
        return arrayOf(this);
    };
    // As that of an array, of the first dimension.
    Pto.Tensor.prototype.subarray = function (begin = 0, end = this.shape[0]) {
        const [n, ...others] = this.shape, [from, to] = [begin, end].map(at => at < 0 ? at + n : Math.min(at, n));
        if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || from >= to) {
            throw new RangeError(from >= to ? _('%s: %s to %s of %s is empty, which no tensor is', 'subarray', begin, end, n)
                : _('%s: %s to %s of %s is no part of it', 'subarray', begin, end, n));
        }
        return this.view([to - from, ...others], [from, ...others.map(() => 0)]);
    };
}
