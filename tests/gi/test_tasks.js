// test_tasks.js: do tasks from JavaScript do with tensors what their arguments say?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

import {chip, elements, fill, floats, set_floats, submit_fill} from './chips.js';
import {equal, main, refused, temporary} from './tap.js';

const [here] = System.programArgs;

const tests = {
    commutative() {
        const buffer = Pto.Buffer.new(4 * elements);
        const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        const worker = chip('par');
        worker.run(orch => {
            for (let i = 0; i < 10; i++) {
                const args = new Pto.TaskArgs();
                args.add_tensor(tensor, Pto.Direction.COMMUTATIVE);
                args.add_scalar_float(4);
                orch.submit(fill, args);
            }
        }, null, null, null);
        equal(worker.statistics.edges, 0, 'edges');
        equal(floats(buffer)[elements - 1], 4, 'the last element');
        worker.close();
    },

    // By hand: what tasks reduce is combined with what there was.
    reduced() {
        const buffers = [0, 1].map(() => Pto.Buffer.new(4 * elements));
        const given = new Pto.TaskArgs();
        for (const buffer of buffers)
            given.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.INOUT);
        const graph = new Pto.Graph();
        const [x, y] = buffers.map((_, i) => graph.add_argument(Pto.Dtype.FLOAT32, [elements], i === 0 ? null : 'y'));
        const add = (tensor, what, value) => {
            const args = new Pto.TaskArgs();
            args.add_reduction(tensor, what);
            args.add_scalar_float(value);
            return graph.add_task(fill, args);
        };
        for (const value of [5, 3, 9])
            add(x, Pto.Reduction.MAX, value);
        for (const value of [5, 3])
            add(y, Pto.Reduction.SUM, value);
        graph.priority = 2;
        equal(graph.priority, 2, 'a priority');
        refused(() => (graph.priority = Pto.MAX_PRIORITY + 1), Pto.Error, 'there is no priority 4');
        refused(() => (graph.priority = 0.5), TypeError, 'not an integer');
        refused(() => graph.add_mixed(fill, null, null), Pto.Error, 'is for the AIV, but it is given as aic of a mixed task');
        equal(graph.add_order(), 5, 'an order');
        const own = new Pto.TaskArgs();
        own.add_tensor(y, Pto.Direction.OUTPUT_EXISTING);
        own.add_scalar_float(-1);
        refused(() => graph.add_group([fill], [own, own]), Pto.Error, 'a group has 1 kernels and 2 lists of arguments');
        equal(graph.add_group([fill], [own]), 6, 'a group');
        equal(graph.add_mixed(null, fill, null, own), 7, 'a mixed task');
        graph.add_successor(6, 5);
        graph.add_successor(7, 6);
        for (const task of [0, 1, 2, 3, 4]) // of what is tested here these two are before all
            graph.add_successor(5, task);
        const short = new Pto.TaskArgs();
        [0, 1].forEach(i => short.add_tensor(Pto.Tensor.new_for_buffer(buffers[i], 0, Pto.Dtype.FLOAT32, [elements - i]), Pto.Direction.INOUT));
        graph.complete();
        equal(graph.n_tasks, 3 + 5 + (3 + 3) + (2 + 2), 'tasks');
        equal([0, 1].map(i => graph.dup_argument_name(i)).join(), ',y', 'a name');
        refused(() => graph.set_argument_name(2, 'z'), Pto.Error, 'the graph has no argument 2: it has 2');
        for (const isolate of [false, true]) {
            const worker = new Pto.Worker({isolate});
            [7, 100].forEach((value, i) => set_floats(buffers[i], new Array(elements).fill(value)));
            worker.run_graph(graph, given, null, null);
            equal(floats(buffers[0])[elements - 1], 9, 'the largest');
            equal(floats(buffers[1])[elements - 1], 7, 'the sum');
            refused(() => worker.run_graph(graph, short), Pto.Error, `argument 1 ("y") of the graph is ${elements} float32, but ${elements - 1}`);
            worker.close();
        }
    },

    priorities() {
        const buffer = Pto.Buffer.new(4 * elements);
        const slow = Pto.Kernel.new(Pto.CoreType.AIC, GLib.build_filenamev([here, 'fill.c']), null);
        const priorities = Array.from({length: 12}, (_, i) => Math.floor(i * 5 / 2) % (Pto.MAX_PRIORITY + 1));
        const worker = Pto.Worker.new_chip('a2a3sim');
        for (const [name, value] of [['backend', 'det'], ['clusters', '1'], ['aicpu-threads', '2'], ['trace', '1']])
            worker.set_parameter(name, value);
        slow.set_cost('constant:1000000');
        const submit = orch => {
            const args = new Pto.TaskArgs();
            args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.NO_DEP);
            args.add_scalar_float(1);
            orch.submit(slow, args);
        };
        worker.run(orch => {
            equal(orch.priority, 0, 'at first');
            refused(() => (orch.priority = Pto.MAX_PRIORITY + 1), Pto.Error, 'there is no priority 4');
            refused(() => (orch.priority = 1.5), TypeError, 'not an integer');
            submit(orch);
            submit(orch);
            for (const priority of priorities) {
                orch.priority = priority;
                submit(orch);
            }
            equal(orch.priority, priorities[11], 'at last');
        }, null, null, null);
        const tasks = worker.trace.list_tasks();
        equal(priorities.map((_, i) => tasks.get_item(i + 2).priority).join(), priorities.join(), 'recorded');
        const starts = priorities.map((_, i) => tasks.get_item(i + 2).start_ns);
        const order = [...priorities.keys()];
        equal([...order].sort((a, b) => starts[a] - starts[b]).join(),
            [...order].sort((a, b) => priorities[b] - priorities[a] || a - b).join(), 'the order');
        worker.close();
    },

    elements() {
        const buffer = Pto.Buffer.new(4 * elements);
        const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        for (const isolate of [false, true]) {
            for (const backend of ['par', 'det', 'threads']) {
                const worker = new Pto.Worker({isolate});
                worker.set_parameter('backend', backend);
                worker.run(orch => {
                    submit_fill(orch, buffer, 2.5);
                    equal(orch.get_element(tensor, [elements - 1]), 2.5, 'what the kernel has written');
                    orch.set_element(tensor, [3], 7.25);
                    equal(orch.get_element(tensor, [3]), 7.25, 'a fraction');
                    orch.set_element(tensor, [3], 7);
                    equal(orch.get_element(tensor, [3]), 7, 'what was written');
                    refused(() => orch.get_element(tensor, [elements]), Pto.Error, 'there is no element 16');
                    refused(() => orch.set_element(tensor, [0], 'seven'), Pto.Error, 'no number of the type float32');
                    refused(() => orch.set_element(tensor, [0], 1e300), Pto.Error, 'which float32 can not hold');
                }, null, null, null);
                equal(floats(buffer).slice(2, 5).join(), '2.5,7,2.5', 'the numbers');
                worker.run(orch => {
                    const types = [Pto.Dtype.FLOAT16, Pto.Dtype.BFLOAT16, Pto.Dtype.FLOAT8_E4M3FN, Pto.Dtype.FLOAT8_E5M2, Pto.Dtype.INT4];
                    types.forEach((type, i) => {
                        const small = orch.alloc(type, [2]);
                        orch.set_element(small, [1], i === 4 ? -3 : -0.75);
                        equal(orch.get_element(small, [1]), i === 4 ? -3 : -0.75, 'of few bits');
                    });
                });
                worker.close();
            }
        }
    },

    // By operators of the chip, and by a kernel: on all back ends, here and in another process.
    reductions() {
        const dir = temporary();
        const head = `#include "tensor.h"
static int32_t *cells (int64_t arg) { return (int32_t *) ((const TensorData *) arg)->buffer.addr; }
void kernel_entry (int64_t *args)`;
        const kernel = (name, text) => {
            const path = GLib.build_filenamev([dir, `${name}.c`]);
            GLib.file_set_contents(path, `${head} { ${text} }\n`);
            return Pto.Kernel.new(Pto.CoreType.AIV, path, null);
        };
        const add = kernel('add', 'for (int i = 0; i < 8; i++) cells (args[0])[i] += i + (int32_t) args[1];');
        const raise = kernel('raise', 'for (int i = 0; i < 8; i++) if (cells (args[0])[i] < args[1] - i) cells (args[0])[i] = args[1] - i;');
        const take = kernel('take', 'for (int i = 0; i < 8; i++) cells (args[0])[i] += cells (args[1])[i];');
        for (const isolate of [false, true]) {
            for (const backend of ['par', 'det', 'threads']) {
                const worker = new Pto.Worker({isolate});
                const buffers = Array.from({length: 3}, () => Pto.Buffer.new(32));
                const tensors = buffers.map(buffer => Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.INT32, [8]));
                const given = (say, number) => {
                    const args = new Pto.TaskArgs();
                    say(args);
                    args.add_scalar(number);
                    return args;
                };
                worker.set_parameter('backend', backend);
                worker.run(orch => {
                    for (let n = 0; n < 60; n++) {
                        orch.submit(add, given(args => args.add_reduction(tensors[0], Pto.Reduction.SUM), n));
                        orch.submit(raise, given(args => args.add_reduction(tensors[1], Pto.Reduction.MAX), n));
                        orch.submit(add, given(args => args.add_reduction_kernel(tensors[2], take, 0), n));
                    }
                    equal(orch.get_element(tensors[0], [2]), 1770 + 120, 'an element');
                    refused(() => orch.submit(add, given(args => args.add_reduction_kernel(tensors[2], take, 0.5), 1)), Pto.Error,
                        'argument 0 is reduced, and what its copies begin with is 0.5');
                    refused(() => orch.submit(add, given(args => args.add_tensor(tensors[2], Pto.Direction.REDUCTION), 1)), Pto.Error,
                        'argument 0 is reduced, but nothing says how');
                }, null, null, null);
                const [sums, most, taken] = buffers.map(buffer => [...new Int32Array(buffer.ref_bytes().toArray().slice().buffer)].join());
                const expected = Array.from({length: 8}, (_, i) => 1770 + 60 * i).join();
                equal(sums, expected, 'sums');
                equal(taken, expected, 'sums by a kernel');
                equal(most, '59,58,57,56,55,54,53,52', 'maxima');
                worker.close();
            }
        }
    },

    // Blocks, kernels of one cluster, groups, clusters, scratch memory: on all back ends, here and in another process.
    several() {
        const dir = temporary();
        const head = `#include "pto_block.h"
#include "tensor.h"
static int32_t *cells (int64_t arg) { return (int32_t *) ((const TensorData *) arg)->buffer.addr; }
void kernel_entry (int64_t *args)`;
        const kernel = (name, core, text) => {
            const path = GLib.build_filenamev([dir, `${name}.c`]);
            GLib.file_set_contents(path, `${head} { ${text} }\n`);
            return Pto.Kernel.new(core, path, null);
        };
        const {AIC, AIV} = Pto.CoreType;
        const block = kernel('block', AIV, 'cells (args[0])[get_block_idx (args)] += 10 * (int32_t) get_block_num (args);');
        const push = kernel('push', AIC, 'int32_t five = 5; TPUSH (args, 0, &five, 4);');
        const pop = kernel('pop', AIV, `int32_t more = 0, sub = get_sub_block_id (args); if (sub == 0) TPOP (args, 0, &more, 4);
            cells (args[0])[2 * get_block_idx (args) + sub] += 1 + more;`);
        const meet = core => kernel(`meet${core}`, core, `int32_t sum = 0; cells (args[0])[get_block_idx (args)] = 1; pto_sync_all (args);
            for (uint32_t i = 0; i < get_block_num (args); i++) sum += cells (args[0])[i];
            pto_sync_all (args); cells (args[0])[get_block_idx (args)] = sum;`);
        const [meet_cube, meet_vector] = [meet(AIC), meet(AIV)];
        const scratch = kernel('scratch', AIV, `int32_t sum = 0; for (int32_t i = 0; i < 100; i++) cells (args[1])[i] = i;
            for (int32_t i = 0; i < 100; i++) sum += cells (args[1])[i]; cells (args[0])[0] += sum;`);
        for (const isolate of [false, true]) {
            for (const backend of ['par', 'det', 'threads']) {
                const worker = new Pto.Worker({isolate});
                const buffers = Array.from({length: 5}, () => Pto.Buffer.new(400));
                const of = (i, say = () => {}) => {
                    const args = new Pto.TaskArgs();
                    args.add_tensor(Pto.Tensor.new_for_buffer(buffers[i], 0, Pto.Dtype.INT32, [100]), Pto.Direction.INOUT);
                    say(args);
                    return args;
                };
                worker.set_parameter('backend', backend);
                worker.run(orch => {
                    equal(orch.n_clusters, 24, 'clusters');
                    equal(orch.dup_cluster_cores(3, AIV).join(), '6,7', 'cores');
                    orch.submit(block, of(0, args => args.set_block_dim(100)));
                    orch.submit_mixed(push, pop, pop, of(1, args => args.set_block_dim(50)));
                    orch.submit(meet_vector, of(2, args => {
                        args.set_block_dim(48);
                        args.set_sync_start(true);
                    }));
                    orch.submit_group([meet_cube, meet_vector, meet_vector, meet_cube], of(3));
                    orch.submit(scratch, of(4, args => args.add_tensor(Pto.Tensor.new(Pto.Dtype.INT32, [100]), Pto.Direction.SCRATCH)));
                    const cluster = orch.allocate_cluster();
                    orch.submit(push, of(4, args => args.set_cluster(cluster)));
                    orch.submit(pop, of(4, args => args.set_cluster(cluster)));
                    orch.free_cluster(cluster);
                    refused(() => orch.free_cluster(cluster), Pto.Error, 'is not allocated in this run');
                    refused(() => orch.submit(block, of(0, args => args.set_cluster(cluster))), Pto.Error, 'kernel "block": cluster');
                    refused(() => orch.submit(block, of(0, args => args.set_block_dim(0))), Pto.Error, 'kernel "block": block_dim is 0');
                    for (const n of [2.5, true, '4', 2 ** 40])
                        refused(() => of(0, args => args.set_block_dim(n)), TypeError, 'a whole number of blocks, 1 to 268435455');
                    refused(() => of(0, args => args.set_sync_start(4)), TypeError, 'set_sync_start: 4 is not true or false');
                    refused(() => orch.free_cluster(0.5), TypeError, 'not the number of a cluster');
                    refused(() => orch.submit_mixed(pop, null, null, of(0)), Pto.Error, 'it is given as aic of a mixed task');
                    refused(() => orch.submit_group(new Array(25).fill(meet_cube), of(0)), Pto.Error, 'which this one has 24 of');
                    refused(() => orch.submit(scratch, of(0, args => args.add_tensor(args.get_tensor(0), Pto.Direction.SCRATCH))),
                        Pto.Error, 'argument 1 is scratch memory');
                }, null, null, null);
                const values = buffers.map(buffer => new Int32Array(buffer.ref_bytes().toArray().buffer));
                const where = ` on ${backend}, isolate ${isolate}`;
                equal([...values[0]].every(value => value === 1000), true, `blocks${where}`);
                equal([...values[1]].every((value, i) => value === (i % 2 ? 1 : 6)), true, `mixed${where}`);
                equal([...values[2]].every((value, i) => value === (i < 48 ? 48 : 0)), true, `at once${where}`);
                equal(values[3].slice(0, 5).join(), '4,4,4,4,0', `a group${where}`);
                equal(values[4][0], 4950 + 6, `scratch and a cluster${where}`);
                worker.close();
            }
        }
        const host = new Pto.Worker({level: 3, n_sub_workers: 1, child_mode: Pto.ChildMode.THREAD});
        host.run(orch => {
            refused(() => orch.submit_mixed(push, null, null, null), Pto.Error, 'use submit_next_level or submit_sub');
            refused(() => orch.allocate_cluster(), Pto.Error, 'clusters are for chips');
            equal(orch.n_clusters, 0, 'clusters of a level');
        }, null, null, null);
        host.close();
    },
};

await main(tests);
