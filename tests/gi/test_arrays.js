// test_arrays.js: are arrays, numbers and options of JavaScript what tasks get?
// SPDX-License-Identifier: LGPL-2.1-or-later
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

import {equal, main, refused, rejected} from './tap.js';

const [here] = System.programArgs;
const dir = GLib.Dir.make_tmp('pto-js-XXXXXX');
const sources = {};

function kernel(name, text, options) {
    const path = `${dir}/${name}.c`;
    if (!(name in sources)) {
        GLib.file_set_contents(path, `#include "tensor.h"
#define AT(type, i) ((type *) ((const TensorData *) args[i])->buffer.addr + ((const TensorData *) args[i])->start_offset)
void kernel_entry (int64_t *args) { ${text} }\n`);
        sources[name] = path;
    }
    return Pto.Callable.kernel(path, options);
}

const n = 8;
const scale = kernel('scale', `uint64_t n = ((const TensorData *) args[0])->shapes[0];
for (uint64_t i = 0; i < n; i++) AT (float, 1)[i] = pto_scalar_float (args[2]) * AT (float, 0)[i];`, {args: 3});
const keep = kernel('keep', 'AT (uint64_t, 0)[0] = (uint64_t) args[1]; AT (uint64_t, 0)[1] = (uint64_t) args[2];', {args: 3});
const chips = [['par', false], ['det', false], ['threads', false], ['par', true]].map(([backend, isolate]) => () => {
    const chip = new Pto.Worker({platform: 'a2a3sim', isolate});
    chip.set_parameter('backend', backend);
    return chip;
});
const [chipOf] = chips;
const twice = (orch, x, y) => {
    const half = orch.tensor(x.shape);
    orch.submit(scale, x.read(), half.write(), 0.5);
    orch.submit(scale, half.read(), y.write_existing(), 4);
};

const tests = {
    // Memory of JavaScript is copied there and back, that of the library is not; both on all back ends and in another process.
    async runs() {
        for (const chip of chips) {
            await chip().use(async worker => {
                for (const make of [() => new Float32Array(n), () => Pto.Buffer.array(n)]) {
                    const [x, y] = [0, 1].map(make);
                    x.forEach((_, i) => (x[i] = i));
                    equal(worker.run(twice, x, y), true, 'a run');
                    equal(y.join(), '0,2,4,6,8,10,12,14', 'a run');
                    y.fill(0);
                    await worker.run_async(twice, x, y);
                    equal(y[7], 14, 'an awaited run');
                    const graph = worker.capture(twice, x, y);
                    equal(graph.n_tasks, 2, 'a capture');
                    const [a, b] = [0, 1].map(make);
                    a.fill(3);
                    worker.run(graph, a, b);
                    equal(b[7], 6, 'a launch with other arrays');
                    a.fill(5);
                    await worker.run_async(graph, a, b);
                    equal(b[0], 10, 'an awaited one');
                    refused(() => worker.run(graph, a), Pto.Error, 'takes 2 arguments, but 1 is given');
                }
            });
        }
    },

    // Parts of one array overlap in the copy, too; beside them nothing is written.
    parts() {
        const all = new Float32Array(20).fill(1);
        const [front, back] = [all.subarray(1, 9), all.subarray(5, 13)];
        chipOf().use(chip => {
            chip.run((orch, x, y) => {
                orch.submit(scale, x.read(), x.update(), 2);
                orch.submit(scale, y.read(), y.update(), 3); // comes after the first
                all[0] = all[15] = 7; // not the run's
            }, front, back);
            equal(all.join(), '7,2,2,2,2,6,6,6,6,3,3,3,3,1,1,7,1,1,1,1', 'both');
            equal(chip.statistics.edges, 1, 'edges');
            const shared = Pto.Buffer.array(20).fill(1), part = shared.subarray(4, 12);
            chip.run((orch, x) => orch.submit(scale, x.read(), x.update(), 5), part);
            equal(shared.join(), '1,1,1,1,5,5,5,5,5,5,5,5,1,1,1,1,1,1,1,1', 'a part of shared memory');
        });
    },

    // Whatever happens, what the run has written is there.
    async failed() {
        const x = new Float32Array(n).fill(1), y = new Float32Array(n);
        await chipOf().use(async chip => {
            const fail = (orch, a, b) => {
                twice(orch, a, b);
                equal(orch.get_element(b), 2, 'an element');
                throw new RangeError('my own words');
            };
            refused(() => chip.run(fail, x, y), RangeError, 'my own words');
            equal(y[0], 2, 'written');
            y.fill(0);
            await rejected(chip.run_async(fail, x, y), RangeError, 'my own words');
            equal(y[0], 2, 'written');
        });
    },

    // A list is an input, as is what was copied elsewhere than for a run.
    inputs() {
        const y = new Float32Array(4), x = new Float32Array([1, 2, 3, 4]);
        chipOf().use(chip => {
            chip.run((orch, a, b) => orch.submit(scale, a.read(), b.write_existing(), 2), [1, 2, 3, 4.5], y);
            equal(y.join(), '2,4,6,9', 'a list');
            refused(() => chip.run((orch, a) => orch.submit(scale, a.read(), a.update(), 2), [1]), Pto.Error, 'can only be read');
            const copy = Pto.Tensor.of(x);
            x.fill(9);
            chip.run((orch, b) => orch.submit(scale, copy.read(), b.write_existing(), 1), y);
            equal(y.join(), '1,2,3,4', 'as it was');
            refused(() => chip.run(orch => orch.submit(scale, copy.read(), copy.update(), 2)), Pto.Error, 'can only be read');
            equal(Pto.Tensor.of([[1, 2, 3], [4, 5, 6]]).to_string(), 'float32 [2, 3]', 'lists in a list');
            for (const [list, type, part] of [[[[1], [1, 2]], TypeError, 'different lengths'], [[2 ** 24 + 1], RangeError, '16777217'],
                [[1e300], RangeError, '1e+300'], [[1n], TypeError, '1n is no Number'], [['1'], TypeError, '"1" is no Number'], [[], TypeError, 'an empty array']])
                refused(() => Pto.Tensor.of(list), type, part);
            for (const [what, part] of [[new ArrayBuffer(8), 'which does not say what is in it'], [5, '5 is no tensor'], ['x', '"x" is no tensor'],
                [null, 'null is no tensor'], [new Float32Array(0), 'an empty array']])
                refused(() => Pto.Tensor.of(what), TypeError, part);
        });
    },

    // Each kind of array is a type of elements, and the other way round.
    types() {
        const all = [[Float32Array, 'FLOAT32'], [Float64Array, 'FLOAT64'], [Int8Array, 'INT8'], [Int16Array, 'INT16'], [Int32Array, 'INT32'],
            [BigInt64Array, 'INT64'], [Uint8Array, 'UINT8'], [Uint16Array, 'UINT16'], [Uint32Array, 'UINT32'], [BigUint64Array, 'UINT64']];
        for (const [Type, name] of all) {
            const array = Pto.Buffer.array([2, 3], name.toLowerCase());
            equal(array instanceof Type && array.length === 6, true, name);
            equal(Pto.Tensor.of(array).dtype, Pto.Dtype[name], name);
            equal(Pto.Tensor.of(new Type(4)).dtype, Pto.Dtype[name], name);
            equal(Pto.Buffer.array(1, Type) instanceof Type, true, name);
            const tensor = Pto.Tensor.of(array, [3, 2]), again = tensor.to_array();
            again[5] = again instanceof BigInt64Array || again instanceof BigUint64Array ? 7n : 7;
            equal(Number(array[5]), 7, `${name}: the same memory`);
            equal(Pto.Tensor.of(again.subarray(4)).address, tensor.address + 4 * Type.BYTES_PER_ELEMENT, `${name}: and its parts`);
            equal(Pto.Tensor.of(again.subarray(4)).is_read_only(), false, name);
        }
        equal(Pto.Tensor.of(Pto.Buffer.array(4, 'bfloat16'), null, 'bfloat16').to_string(), 'bfloat16 [4]', 'bits');
        refused(() => Pto.Tensor.of(new Uint16Array(4), [4], 'float32'), TypeError, '"float32" is no type of elements for a Uint16Array');
        refused(() => Pto.Tensor.of(new Float32Array(4), [5]), TypeError, 'a shape of 5 elements, [5], for an array of 4');
        refused(() => Pto.Buffer.array(4, 'float'), TypeError, '"float" is none of Pto.Dtype');
        for (const shape of [0, -1, 1.5, [], [2, 0], '4'])
            refused(() => Pto.Buffer.array(shape), TypeError, 'is no extent of a shape');
        refused(() => Pto.Buffer.array(2 ** 52), RangeError, 'there is no memory for the shape');
        const columns = Pto.Tensor.of(Pto.Buffer.array([4, 4]), [4, 4]).view([4, 2], [0, 1]);
        refused(() => columns.to_array(), TypeError, 'has gaps');
        refused(() => Pto.Tensor.new(Pto.Dtype.INT8, [4]).to_array(), Pto.Error, 'tensor int8 [4] has no memory');
        const only = Pto.Tensor.of([1, 2]).to_array();
        only[0] = 5;
        equal(only.join(), '5,2', 'a copy of what can only be read');
    },

    // An array keeps the memory that it is over, and a tensor the array's.
    life() {
        let array = Pto.Buffer.array(1 << 16);
        const tensor = Pto.Tensor.of(array).subarray(8);
        array[8] = 3;
        array = null;
        const view = tensor.to_array();
        for (let i = 0; i < 50; i++)
            Pto.Buffer.array(1 << 16).fill(i);
        System.gc();
        equal(view[0], 3, 'its first element');
        let part = Pto.Tensor.of(Pto.Buffer.array(4).fill(2)).to_array();
        System.gc();
        equal(part.join(), '2,2,2,2', 'of an array that nobody has');
        part = null;
        System.gc();
    },

    subarrays() {
        const x = Pto.Tensor.of(Pto.Buffer.array([6, 4]), [6, 4]);
        equal(x.subarray(2).to_string(), 'float32 [4, 4]', 'from');
        equal(x.subarray(1, -1).to_string(), 'float32 [4, 4]', 'from, to');
        equal(x.subarray(-2).address, x.address + 4 * 4 * 4, 'from the end');
        equal(x.subarray(4, 99).shape[0], 2, 'as of an array');
        for (const [begin, end] of [[3, 3], [6, 7], [4, 2], [0.5, 2], [-9, 2]])
            refused(() => x.subarray(begin, end), RangeError, `subarray: ${begin} to ${end} of 6 is `);
    },

    // 2 and 2.5 are of one kind, whatever their values; integers are BigInts, of 64 bits.
    numbers() {
        const {DOUBLE, FLOAT, SIGNED, UNSIGNED} = Pto.ScalarKind;
        const values = [2, 2.5, 2n, -5n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 64n - 1n, Pto.int(3), Pto.uint(4), Pto.uint(2n ** 63n + 1n), Pto.float(1), Pto.double(0.1)];
        const kinds = [FLOAT, FLOAT, SIGNED, SIGNED, SIGNED, SIGNED, UNSIGNED, SIGNED, UNSIGNED, UNSIGNED, FLOAT, DOUBLE];
        const args = Pto.TaskArgs.of(Pto.Tensor.of(Pto.Buffer.array(2)).read(), ...values);
        equal(kinds.every((kind, i) => args.get_scalar_kind(i + 1) === kind), true, 'kinds');
        const [tensor, ...given] = args;
        equal(tensor.n_elements, 2, 'the tensor');
        values.forEach((value, i) => equal(given[i], value.valueOf(), `value ${i}`));
        equal(args.get_scalar_value(5), 2n ** 63n - 1n, 'what no Number holds');
        equal(args.get_scalar(4), 2n ** 64n - 5n, 'a word');
        equal(args.get_scalar(3), 2, 'a word');
        equal(args.get_scalar(12), 0x3fb999999999999an, 'the bits of a double');
        for (const [call, type, part] of [
            [() => Pto.int(2.5), TypeError, 'Pto.int: 2.5 is not an integer'],
            [() => Pto.int(2 ** 53), TypeError, 'give a BigInt'],
            [() => Pto.int('2'), TypeError, '"2" is not an integer'],
            // Of what is long a message has the begin.
            [() => Pto.int('x'.repeat(5000)), TypeError, `: "${'x'.repeat(80)}"... is not an integer`],
            [() => Pto.int(new Uint8Array(5000)), TypeError, `: [${'0, '.repeat(12)}...] is not an integer`],
            [() => Pto.int(Array(5000).fill(1n)), TypeError, `: [${'1n, '.repeat(12)}...] is not an integer`],
            [() => Pto.int(2n ** 63n), RangeError, 'does not fit in 64 bits with a sign'],
            [() => Pto.uint(-1), RangeError, 'does not fit in 64 bits without a sign'],
            [() => Pto.double(2n), TypeError, '2n is not a Number'],
            [() => Pto.TaskArgs.of(2n ** 64n), RangeError, 'does not fit'],
            [() => Pto.TaskArgs.of(-(2n ** 63n) - 1n), RangeError, 'does not fit'],
            [() => Pto.TaskArgs.of(1, true), TypeError, 'argument 1: true is neither a tensor'],
            [() => Pto.TaskArgs.of('2'), TypeError, 'argument 0: "2" is neither a tensor'],
            [() => Pto.TaskArgs.of(tensor), TypeError, 'argument 0: what is done with the tensor? x.read(), x.write()'],
            [() => Pto.TaskArgs.of(new Float32Array(2)), TypeError, 'argument 0: an array is no argument of a task'],
        ])
            refused(call, type, part);
        // As kernels and functions get them.
        const out = Pto.Buffer.array(2, 'uint64');
        chipOf().use(chip => {
            chip.run((orch, x, big, small) => {
                equal(big, 2n ** 60n + 1n, 'given to the function');
                equal(small, 2.5, 'given to the function');
                orch.submit(keep, x.update(), big, -1n);
            }, out, 2n ** 60n + 1n, 2.5);
            equal(out.join(), `${2n ** 60n + 1n},${2n ** 64n - 1n}`, 'at the kernel');
            chip.run((orch, x) => orch.submit(keep, x.update(), 1, Pto.double(1)), out);
            equal(out.join(), `${0x3f800000n},${0x3ff0000000000000n}`, 'bits of a float and a double');
        });
    },

    // Elements of 64 bits are BigInts, in memory of the program and of the runtime.
    elements() {
        for (const chip of chips) {
            chip().use(worker => worker.run((orch, x) => {
                for (const tensor of [x, orch.alloc([2, 3], 'int64')]) {
                    orch.set_element(tensor, [1, 2], -(2n ** 62n) - 1n);
                    equal(orch.get_element(tensor, [1, 2]), -(2n ** 62n) - 1n, 'an element');
                    orch.set_element(tensor, -5);
                    equal(orch.get_element(tensor), -5n, 'the first one');
                }
                const unsigned = orch.alloc([2], BigUint64Array);
                orch.set_element(unsigned, [1], 2n ** 64n - 1n);
                equal(orch.get_element(unsigned, [1]), 2n ** 64n - 1n, 'unsigned');
                refused(() => orch.get_element(unsigned, [2]), Pto.Error, 'there is no element 2');
                equal(orch.get_element(orch.alloc([2], 'int32')), 0, 'a Number');
            }, Pto.Tensor.of(Pto.Buffer.array([2, 3], BigInt64Array), [2, 3])));
        }
    },

    // What a submit says of its task, and gives.
    options() {
        const [x, y, flag] = [0, 1, 2].map(() => new Float32Array(n).fill(1));
        chipOf().use(chip => {
            chip.set_parameter('trace', true);
            chip.run((orch, a, b, c) => {
                const first = orch.submit(scale, a.read(), a.update(), 2);
                equal(String(first), 'task 0', 'a task');
                const last = orch.submit_order({after: first});
                equal(last.number, orch.last_task, 'its number');
                orch.fill(c, 0);
                orch.submit(scale, b.read(), b.update(), 3, {after: [first, last], when: [c, 3], priority: 2});
                orch.submit(scale, [b.read(), b.update(), 5], {when: a});
                equal(orch.priority, 0, 'of that one alone');
                for (const inner of orch.manual_scope())
                    inner.submit(scale, c.read(), c.update(), 2, {after: inner.fill(c, 4, {after: []})});
                const args = Pto.TaskArgs.of(a.no_dep());
                args.add_after(last);
                orch.submit_order(args);
                for (const [after, part] of [[-1, '-1'], ['1', '"1"'], [[1.5], '1.5'], [true, 'true'], [null, 'null']])
                    refused(() => orch.submit_order({after}), TypeError, `after: ${part} is nothing that submit() gives`);
                refused(() => orch.submit(scale, {block_dimm: 3}), TypeError, 'submit: there is no option block_dimm');
                refused(() => orch.submit_order({priority: 1}), TypeError, 'submit_order: there is no option priority');
                refused(() => orch.submit(scale, a.read(), a.update(), 2, {priority: 9}), Pto.Error, 'there is no priority 9');
                refused(() => orch.submit(scale, a.read(), a.update(), 2, {block_dim: 1.5}), TypeError, 'whole number of blocks');
                refused(() => orch.submit(scale, a.read(), a.update()), Pto.Error, 'takes 3 arguments');
            }, x, y, flag);
            equal([x[0], y[0], flag[0]].join(), '2,5,8', 'the numbers');
            equal([...chip.trace.list_tasks()].map(task => task.priority).join(), '0,0,0,2,0,0,0,0', 'priorities');
        });
    },

    // Scopes that are iterated end however the loop does.
    scopes() {
        const x = new Float32Array(n).fill(1);
        chipOf().use(chip => {
            chip.run((orch, a) => {
                const submit = of => of.submit(scale, a.read(), a.update(), 2);
                for (const inner of orch.scope()) {
                    submit(inner);
                    for (const innermost of inner.scope())
                        submit(innermost);
                }
                for (const inner of orch.scope()) {
                    submit(inner);
                    break;
                }
                refused(() => {
                    for (const inner of orch.scope()) {
                        submit(inner);
                        throw new RangeError('my own words');
                    }
                }, RangeError, 'my own words');
                submit(orch);
                refused(() => orch.end_scope(), Pto.Error, 'no scope is open');
            }, x);
            equal([0, 1, 2, 3].map(ring => chip.statistics.get_last_task_alive(ring)).join(), '1,3,1,0', 'rings');
            equal(x[0], 32, 'the numbers');
        });
    },

    // Errors are those that were thrown, whatever they are.
    async errors() {
        class Mine extends Error {}
        const worker = chipOf();
        const thrown = [new Mine('mine'), new RangeError(''), new GLib.Error(Gio.io_error_quark(), Gio.IOErrorEnum.NO_SPACE, 'full'), 'a text', {code: 5}, null, 7];
        for (const what of thrown) {
            const fail = () => {
                throw what;
            };
            for (const call of [() => worker.run(fail), () => worker.run_async(fail), () => worker.capture(fail), () => worker.run(fail, new Float32Array(2))]) {
                let caught = worker;
                try {
                    await call();
                } catch (error) {
                    caught = error;
                }
                equal(caught, what, `thrown as ${String(what)}`);
            }
        }
        // One that was caught is not what the run ends with.
        const later = orch => {
            refused(() => orch.with_scope(() => {
                throw new Mine('inside');
            }), Mine, 'inside');
            orch.submit(scale, 5);
        };
        refused(() => worker.run(later), Pto.Error, 'takes 3 arguments, but 1 is given');
        const cancellable = new Gio.Cancellable();
        cancellable.cancel();
        await rejected(worker.run_async(twice, new Float32Array(n), new Float32Array(n), {cancellable}), Gio.IOErrorEnum, 'cancelled');
        refused(() => worker.run(twice, [1], [1], {canncellable: cancellable}), TypeError, 'run: there is no option canncellable');
        refused(() => worker.run(twice, [1], new Pto.TaskArgs()), TypeError, 'after what is run come its arguments');
        refused(() => worker.run('graph', [1]), TypeError, '"graph" can not be run: a function can');
        refused(() => worker.run(async () => {}, [1]), TypeError, 'AsyncFunction');
        refused(() => worker.run(twice, [1], [1], {config: {block_dmi: 1}}), TypeError, 'block_dmi does not exist');
        worker.close();
    },

    // A configuration goes along, also as an object.
    config() {
        const seen = [];
        chipOf().use(chip => {
            chip.run((orch, args, config) => seen.push(config.block_dim), null, Object.assign(new Pto.CallConfig(), {block_dim: 3}));
            chip.run((orch, args, config) => seen.push(config.block_dim), {config: {block_dim: 4}});
        });
        equal(seen.join(), '3,4', 'configurations');
    },

    // Closed behind the function, whatever becomes of that.
    async use() {
        const [first, second, third] = [0, 1, 2].map(() => chipOf());
        equal(first.use(chip => {
            chip.run(() => true);
            return 5;
        }), 5, 'what it gives');
        refused(() => second.use(() => {
            throw new RangeError('my own words');
        }), RangeError, 'my own words');
        await rejected(third.use(async () => {
            await null;
            throw new RangeError('later');
        }), RangeError, 'later');
        for (const worker of [first, second, third])
            equal(worker.state, Pto.WorkerState.CLOSED, 'closed');
        refused(() => chipOf().use(5), TypeError, '5 is not a function');
    },

    // A graph that is built by hand, of plain values.
    by_hand() {
        const graph = new Pto.Graph(), [x, y] = ['x', 'y'].map(name => graph.add_argument([n], 'float32', name));
        const half = graph.tensor([n]);
        const first = graph.add_task(scale, x.read(), half.write(), 0.5);
        graph.add_successor(first, graph.add_task(scale, half.read(), y.write_existing(), 8, {priority: 1}));
        graph.add_group([scale], [[x.read(), graph.scratch([n]), 2]]);
        equal(graph.add_mixed(null, scale, null, x.read(), graph.scratch([n]), 2, {block_dim: 2}), 3, 'a task');
        refused(() => graph.add_task(scale, x.read(), {after: 1}), TypeError, 'add_task: there is no option after');
        const [a, b] = [new Float32Array(n).fill(3), new Float32Array(n)];
        chipOf().use(chip => {
            chip.run(graph, a, b);
            equal(b[7], 12, 'the number');
            refused(() => chip.run(graph, a, new Float32Array(3)), Pto.Error, 'argument 1 ("y")');
        });
    },

    // Groups, with arguments of their own, on cores that are named; and reductions.
    groups() {
        const [x, y] = [0, 1].map(() => new Float32Array(n).fill(1));
        const add = kernel('add', 'for (int i = 0; i < 8; i++) AT (float, 0)[i] += pto_scalar_float (args[1]);', {args: 2});
        const take = kernel('take', 'for (int i = 0; i < 8; i++) if (AT (float, 1)[i] > AT (float, 0)[i]) AT (float, 0)[i] = AT (float, 1)[i];', {args: 2});
        chipOf().use(chip => {
            chip.set_parameter('trace', true);
            chip.run((orch, a, b, off) => {
                orch.submit_group([scale, scale], {args_list: [[a.read(), a.update(), 2], [b.read(), b.update(), 3]], cores: ['AIV7', null]});
                // None of these runs: the element is 0.
                for (const options of [{sync_start: true, block_dim: 2}, {cluster: orch.allocate_cluster()}])
                    orch.submit(scale, a.read(), a.update(), 100, {...options, when: off});
                orch.submit_mixed(null, scale, null, a.read(), a.update(), 100, {when: [off, 0]});
                orch.submit_group([scale, scale], a.read(), a.update(), 100, {when: off});
                orch.submit_group([scale], {args_list: [[a.read(), a.update(), 100]], when: off});
                refused(() => orch.submit_group([scale], {args_list: [[]], cores: ['AIC1']}), TypeError, "\"AIC1\": a core of its kernel's type is wanted");
                refused(() => orch.submit_group([scale], a.read(), {args_list: [[]]}), TypeError, 'one or the other');
                for (const value of [1, 2, 3])
                    orch.submit(add, a.reduce('sum'), value);
                for (const value of [4, 9, 2])
                    orch.submit(add, b.reduce(take, 0), value);
                refused(() => a.reduce('mean'), TypeError, '"mean" is nothing that tensors are reduced by');
            }, x, y, new Int32Array(1));
            equal([x[0], y[0]].join(), '8,9', 'the numbers');
            const cores = [...chip.trace.list_tasks().get_item(0).list_members()].map(member => chip.trace.list_cores().get_item(member.core).name);
            equal(cores.includes('AIV7'), true, cores.join());
        });
    },

    // Above chips: in processes, which see arrays of both kinds. Functions of JavaScript can not be called there.
    async levels() {
        const library = GLib.getenv('PTO_TEST_SUB_FUNCTIONS');
        for (const child_mode of ['process', 'thread']) {
            await new Pto.Worker({level: 3, devices: [0, 1], sub_workers: 2, child_mode}).use(async host => {
                const count = host.register(Pto.ImportedFunction.new_for_symbol(Pto.CallableKind.SUB, `${library}:count_call`));
                const add = host.register(Pto.Callable.chip(GLib.build_filenamev([here, '..', '..', 'examples', 'worked-example', 'add'])));
                for (const words of [new BigUint64Array(2), Pto.Buffer.array(2, 'uint64')]) {
                    const [a, b, c] = [0, 1, 2].map(() => new Float32Array(n).fill(2));
                    await host.run_async((orch, w, x, y, z) => {
                        const first = orch.submit_sub(count, [w.update(), 0n], {worker: 1});
                        orch.submit_sub(count, w.update(), 1n, {after: first});
                        orch.submit_sub(count, [w.update(), 1n], 0); // as in C
                        orch.submit_sub_group(count, [[w.no_dep(), 0n], [w.no_dep(), 1n]], {after: orch.submit_order({after: orch.last_task})});
                        orch.submit_next_level(add, [x.read(), y.read(), z.write_existing()], {worker: 1, config: new Pto.CallConfig()});
                        refused(() => orch.submit_sub(count, [w.update()], {device: 1}), TypeError, 'submit_sub: there is no option device');
                    }, words, a, b, c);
                    equal(words.join(), '2,3', `calls, ${child_mode}`);
                    equal(c[7], 4, 'a chip');
                }
                const mine = Pto.SubFunction.new('mine', () => true);
                refused(() => host.register(mine), Pto.Error, '"mine" is a function of JavaScript, which no SUB worker can call');
                await rejected(host.register_async(mine), Pto.Error, '"mine" is a function of JavaScript');
            });
            const top = Pto.Worker.new_host(4, 0, 0, null);
            top.add_worker(new Pto.Worker({level: 3, sub_workers: 1}));
            const handle = top.register(Pto.OrchestrationFunction.new('below', () => true));
            equal(top.run(handle), true, 'on its own worker');
            refused(() => top.run(orch => orch.submit_next_level(handle)), Pto.Error, '"below" is a function of JavaScript, which no worker below can call');
            top.close();
        }
        for (const [properties, part] of [[{level: 3, devices: 999}, 'devices: 999: a number of them'], [{level: 3, devices: [-1]}, '[-1] is not a list'],
            [{level: 3, child_mode: 'fork'}, 'child_mode: "fork" is none of process, thread'], [{task_window: 16}, "set_parameter('task-window', '16')"]])
            refused(() => new Pto.Worker(properties), TypeError, part);
    },

    kernels() {
        const cube = Pto.Callable.kernel(sources.scale, {core: 'aic', args: 3, flags: '-O1 -DX=1', include_dirs: dir, cost: 'constant:5'});
        equal(cube.core_type, Pto.CoreType.AIC, 'core');
        equal(cube.compiler_flags.join(' '), '-O1 -DX=1', 'flags');
        equal(cube.include_dirs.join(), dir, 'directories');
        equal(cube.n_args, 3, 'arguments');
        refused(() => Pto.Callable.kernel(sources.scale, {core: 'gpu'}), TypeError, 'it is "aic" or "aiv"');
        refused(() => Pto.Callable.kernel(sources.scale, 'aic'), TypeError, '"aic" is no object of options');
        refused(() => new Pto.Worker('a2a3sim'), TypeError, '"a2a3sim" is no object of properties');
        chipOf().use(chip => chip.run(orch => {
            equal(orch.tensor(4).to_string(), 'float32 [4]', 'one number');
            equal(orch.tensor(4, 'int8').to_string(), 'int8 [4]', 'one number');
            refused(() => orch.tensor('4'), TypeError, 'shape: "4" is not a list of integers');
            refused(() => orch.tensor(), TypeError, 'make_tensor');
            refused(() => orch.tensor([4], 'float'), TypeError, '"float" is none of Pto.Dtype');
        }));
        refused(() => Pto.Callable.kernel(sources.scale, {arg: 3}), TypeError, 'Pto.Callable.kernel: there is no option arg');
        chipOf().use(chip => chip.run((orch, x) => {
            orch.set_element(x, 2, 7);
            orch.set_element(x, [3], 8);
            equal([orch.get_element(x, 2), orch.get_element(x, [3]), orch.get_element(x)].join(), '7,8,1', 'one number as a place');
        }, Float32Array.of(1, 2, 3, 4)));
        equal(String(Pto.Tensor.of([1]).read()), 'float32 [1] as INPUT', 'an argument');
        equal(String(Pto.int(5)), 'Pto.int(5)', 'a number');
    },

    // GJS wraps around what is less than 0, and takes texts.
    properties() {
        for (const field of ['level', 'device_id', 'n_sub_workers', 'sub_workers', 'heap_ring_size', 'progress_interval', 'nSubWorkers', 'heap-ring-size']) {
            refused(() => new Pto.Worker({level: 3, [field]: -1}), TypeError, `Pto.Worker: ${field}: -1 is not an integer of `);
            for (const [wrong, part] of [[1.5, '1.5'], ['1', '"1"'], [2n, '2n'], [null, 'null']])
                refused(() => new Pto.Worker({level: 3, [field]: wrong}), TypeError, `Pto.Worker: ${field}: ${part} is not an integer`);
        }
        const worker = new Pto.Worker({level: 3, sub_workers: 2, progress_interval: 7});
        equal([worker.n_sub_workers, worker.level, worker.progress_interval].join(), '2,3,7', 'numbers');
        for (const wrong of [-1, 0, 1.5, '9'])
            refused(() => (worker.progress_interval = wrong), TypeError, 'Pto.Worker: progress_interval: ');
        worker.progress_interval = 9;
        equal(worker.progress_interval, 9, 'set');
    },

    // What is wanted in its place.
    async functions() {
        const func = () => {}, graph = new Pto.Graph(), host = new Pto.Worker({level: 3, sub_workers: 1});
        refused(() => host.register(func), TypeError, 'Pto.Worker.register: a function is no callable: Pto.OrchestrationFunction.new(');
        await rejected((async () => await host.register_async(func))(), TypeError, 'Pto.SubFunction.new(name, function) one for SUB workers');
        refused(() => graph.add_task(func), TypeError, 'Pto.Graph.add_task: a function is no kernel: Pto.Callable.kernel(path)');
        chipOf().use(chip => chip.run(orch => {
            refused(() => orch.submit(func, 2), TypeError, 'Pto.Orchestrator.submit: a function is no kernel');
            refused(() => orch.submit_group([func]), TypeError, 'submit_group: a function is no kernel');
            refused(() => orch.submit_sub(func), TypeError, 'submit_sub: a function is not registered: worker.register(callable)');
        }));
        host.close();
    },
};

await main(tests, () => {
    for (const path of Object.values(sources))
        GLib.unlink(path);
    GLib.rmdir(dir);
});
