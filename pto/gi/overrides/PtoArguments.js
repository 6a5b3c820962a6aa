// PtoArguments.js: what is given to a task, or to a run?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Values of JavaScript are the TaskArgs that the library takes, and what a submit says of its task goes along in them.
const {isArray, tensorOf} = imports.overrides.PtoArrays;
const {pushArguments} = imports.overrides.PtoMirrors;
const {_, nearest, shown} = imports.overrides.PtoText;

const [LOWEST, FIRST_UNSIGNED, BEHIND] = [-(2n ** 63n), 2n ** 63n, 2n ** 64n];

// A tensor with what a task does with it.
var Argument = class {
    constructor(tensor, direction, how = null, initial = 0) {
        Object.assign(this, {tensor, direction, how, initial});
        Object.freeze(this);
    }

    toString() {
        const {Direction} = imports.gi.Pto;
        return `${this.tensor.to_string()} as ${Object.keys(Direction).find(name => Direction[name] === this.direction)}`;
    }
};

// A number with what it is for a kernel.
var Scalar = class {
    constructor(kind, value) {
        Object.assign(this, {kind, value});
        Object.freeze(this);
    }

    valueOf() {
        return this.value;
    }

    toString() {
        return `Pto.${this.kind}(${this.value})`;
    }
};

// What a submit gives: to come after it.
var Task = class {
    constructor(number) {
        this.number = number;
        Object.freeze(this);
    }

    valueOf() {
        return this.number;
    }

    toString() {
        const ring = Math.floor(this.number / 2 ** 32);
        return `task ${ring > 0 ? `${ring}:` : ''}${this.number % 2 ** 32}`; // as traces and errors name it
    }
};

function integerOf(kind, value) {
    if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) {
        throw new TypeError(Number.isInteger(value)
            ? _('%s: %s is not an integer that a Number holds, which ends at 2 ** 53: give a BigInt', `Pto.${kind}`, value)
            : _('%s: %s is not an integer', `Pto.${kind}`, shown(value)));
    }
    const integer = BigInt(value), [low, high] = kind === 'int' ? [LOWEST, FIRST_UNSIGNED] : [0n, BEHIND];
    if (integer < low || integer >= high) {
        throw new RangeError(kind === 'int' ? _('%s: %s does not fit in 64 bits with a sign', 'Pto.int', value)
            : _('%s: %s does not fit in 64 bits without a sign', `Pto.${kind}`, value));
    }
    return new Scalar(kind, integer);
}

function numberOf(kind, value) {
    if (typeof value !== 'number')
        throw new TypeError(_('%s: %s is not a Number', `Pto.${kind}`, shown(value)));
    return new Scalar(kind, value);
}

// What a value is does not depend on how large it is: 2 and 2.5 are the same to a kernel.
function scalarOf(value) {
    if (value instanceof Scalar)
        return value;
    if (typeof value === 'number')
        return new Scalar('float', value);
    if (typeof value !== 'bigint')
        return null;
    return integerOf(value >= FIRST_UNSIGNED ? 'uint' : 'int', value);
}

function isPlain(what) {
    return typeof what === 'object' && what !== null && [Object.prototype, null].includes(Object.getPrototypeOf(what));
}

function operatorOf(how) {
    const {Callable, Reduction} = imports.gi.Pto;
    if (how instanceof Callable)
        return how;
    const operator = typeof how === 'string' ? Reduction[how.toUpperCase()] : how;
    if (!Object.values(Reduction).includes(operator))
        throw new TypeError(_('%s is nothing that tensors are reduced by: "sum", "prod", "min", "max", or a kernel', shown(how)));
    return operator;
}

function addTensor(args, {tensor, direction, how, initial}) {
    if (how === null)
        args.add_tensor(tensor, direction);
    else if (how instanceof imports.gi.Pto.Callable)
        args.add_reduction_kernel(tensor, how, initial);
    else
        args.add_reduction(tensor, how);
}

const adders = {int: 'add_scalar_signed', uint: 'add_scalar', float: 'add_scalar_float', double: 'add_scalar_double'};

function add(args, value, i) {
    const {Buffer, Tensor} = imports.gi.Pto;
    if (value instanceof Argument) {
        addTensor(args, value);
        return;
    }
    if (value instanceof Tensor) {
        throw new TypeError(_('argument %s: what is done with the tensor? x.read(), x.write(), x.update(), x.write_existing(), ' +
            'x.commute(), x.reduce("sum") or x.no_dep()', i));
    }
    if (isArray(value) || value instanceof Buffer) {
        throw new TypeError(_('argument %s: an array is no argument of a task: give it to run(), or x = Pto.Tensor.of(array), then ' +
            'x.read(), x.write(), x.update(), x.write_existing(), x.commute(), x.reduce("sum") or x.no_dep()', i));
    }
    const scalar = scalarOf(value);
    if (scalar === null) {
        throw new TypeError(_('argument %s: %s is neither a tensor with what is done with it, x.read(), nor a number: ' +
            '2.5 is a float, 2n an integer, Pto.double(2.5) a double', i, shown(value)));
    }
    args[adders[scalar.kind]](scalar.value);
}

function argsOf(values) {
    const args = new imports.gi.Pto.TaskArgs();
    values.forEach((value, i) => add(args, value, i));
    return args;
}

function tasksOf(after) {
    const tasks = Array.isArray(after) ? after : [after];
    return tasks.map(task => {
        const number = task instanceof Task ? task.number : task;
        if (!Number.isSafeInteger(number) || number < 0)
            throw new TypeError(_('after: %s is nothing that submit() gives: one is wanted, a list of them, or []', shown(task)));
        return number;
    });
}

function addTerms(args, {after = [], when = null, block_dim = null, sync_start = false, cluster = null}) {
    for (const task of tasksOf(after))
        args.add_after(task);
    if (when !== null) {
        const [what, ...index] = Array.isArray(when) ? when : [when];
        const tensor = tensorOf(what);
        args.set_condition(tensor, index.length > 0 ? index : tensor.shape.map(() => 0));
    }
    if (block_dim !== null)
        args.set_block_dim(block_dim);
    if (cluster !== null)
        args.set_cluster(cluster);
    if (sync_start !== false)
        args.set_sync_start(sync_start);
}

const terms = ['after', 'when', 'block_dim', 'sync_start', 'cluster'];

// The options that come last, if there are some. Misspelt ones would have no effect.
function takeOptions(where, given, allowed) {
    const options = isPlain(given.at(-1)) ? given.pop() : {};
    for (const name of Object.keys(options)) {
        if (!allowed.includes(name)) {
            throw new TypeError((allowed.length > 1 ? _('%s: there is no option %s: there are %s', where, name, allowed.join(', '))
                : _('%s: there is no option %s: there is %s', where, name, allowed.join())) +
                nearest(name, allowed.filter(each => !(each in options))));
        }
    }
    return options;
}

// The arguments of a task, one by one, as a list, as a TaskArgs or none, with what its options say of it.
function taskArgs(where, given, options = {}) {
    const {TaskArgs} = imports.gi.Pto, said = terms.filter(name => options[name] !== undefined);
    const [only] = given.length === 1 ? given : [undefined];
    if (only instanceof TaskArgs) {
        if (said.length > 0)
            throw new TypeError(_('%s: a TaskArgs says itself what its task is, %s: add_after(), set_condition(), set_block_dim()', where, said.join(', ')));
        pushArguments(only);
        return only;
    }
    const values = Array.isArray(only) ? only : given.length === 1 && (only === null || only === undefined) ? [] : given;
    if (values.length === 0 && said.length === 0)
        return null;
    const args = argsOf(values);
    addTerms(args, options);
    pushArguments(args);
    return args;
}

// An argument of a whole orchestration, which may do with it whatever can be done, unless it is tagged as an input.
function untagged(value) {
    const {Direction, Tensor} = imports.gi.Pto;
    if (value instanceof Argument)
        return value.direction === Direction.INPUT ? new Argument(value.tensor.as_read_only(), value.direction) : value;
    if (!(value instanceof Tensor))
        return value;
    return new Argument(value, value.is_read_only() ? Direction.INPUT : Direction.INOUT);
}

// The integers that a Number can not hold, from the text, which has all of their digits.
function integerAt(args, i) {
    return BigInt(args.to_string().split(', ').slice(-args.get_n_scalars())[i - args.get_n_tensors()]);
}

function safest(integer) {
    const number = Number(integer);
    return Number.isSafeInteger(number) ? number : integer;
}

function takeNumbers(Pto) {
    const where = Pto.TaskArgs.prototype, {get_scalar, get_scalar_value} = where;
    const isInteger = (args, i) => args.get_direction(i) === Pto.Direction.SCALAR &&
        [Pto.ScalarKind.SIGNED, Pto.ScalarKind.UNSIGNED].includes(args.get_scalar_kind(i));

    where.get_scalar_value = function (i, ...rest) {
        return Number.isInteger(i) && isInteger(this, i) ? safest(integerAt(this, i)) : get_scalar_value.call(this, i, ...rest);
    };
    where.get_scalar = function (i, ...rest) {
        if (!Number.isInteger(i) || this.get_direction(i) !== Pto.Direction.SCALAR || this.get_scalar_kind(i) === Pto.ScalarKind.FLOAT)
            return get_scalar.call(this, i, ...rest);
        if (isInteger(this, i))
            return safest(BigInt.asUintN(64, integerAt(this, i)));
        return safest(new BigUint64Array(new Float64Array([this.get_scalar_double(i)]).buffer)[0]);
    };
    // Tensors, then numbers, each as it was given.
    where[Symbol.iterator] = function* () {
        for (let i = 0; i < this.get_n_args(); i++) {
            if (this.get_direction(i) !== Pto.Direction.SCALAR)
                yield this.get_tensor(i);
            else
                yield isInteger(this, i) ? integerAt(this, i) : this.get_scalar_double(i);
        }
    };
    Pto.TaskArgs.of = (...values) => argsOf(values);
    for (const kind of ['int', 'uint'])
        Pto[kind] = value => integerOf(kind, value);
    for (const kind of ['float', 'double'])
        Pto[kind] = value => numberOf(kind, value);
}

function takeTags(Pto) {
    const where = Pto.Tensor.prototype, {add_after} = Pto.TaskArgs.prototype;
    Pto.TaskArgs.prototype.add_after = function (task, ...rest) {
        return add_after.call(this, task instanceof Task ? task.number : task, ...rest);
    };
    const tags = {read: 'INPUT', write: 'OUTPUT', update: 'INOUT', write_existing: 'OUTPUT_EXISTING', no_dep: 'NO_DEP', commute: 'COMMUTATIVE'};
    for (const [name, direction] of Object.entries(tags)) {
        where[name] = function () {
            return new Argument(this, Pto.Direction[direction]);
        };
    }
    where.reduce = function (how, initial = 0) {
        return new Argument(this, Pto.Direction.REDUCTION, operatorOf(how), initial);
    };
}
