// test_workers.js: does JavaScript reach workers below, and what they share?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import Pto from 'gi://Pto?version=1';

import {elements, fill, floats} from './chips.js';
import {check, equal, main, refused} from './tap.js';

const tests = {
    // For some workers only: by their ids, or themselves.
    targets() {
        const library = GLib.getenv('PTO_TEST_SUB_FUNCTIONS');
        const host = new Pto.Worker({level: 3, n_sub_workers: 3});
        const add = Pto.ImportedFunction.new_for_symbol(Pto.CallableKind.SUB, `${library}:throw_group`);
        const handle = host.register(add, null, {workers: [1, 2]});
        equal(host.register_on(add, [2]).equal(handle), true, 'the handle of one that is registered again');
        refused(() => host.run(orch => orch.submit_sub(handle, [], {worker: 0})), GLib.Error, 'is not registered on worker 0 of L3/0, but on 1, 2');
        refused(() => host.run(orch => orch.submit_sub(handle, [])), GLib.Error, 'on L3/0/sub1 failed');
        refused(() => host.run(orch => orch.submit_sub(handle, [], {worker: 2})), GLib.Error, 'on L3/0/sub2 failed');
        refused(() => host.register(add, {workers: [3]}), Pto.Error, 'L3/0 has no SUB worker 3');
        refused(() => host.register(add, {workers: []}), TypeError, 'would register it nowhere');
        refused(() => host.register(add, {workers: ['one']}), TypeError, 'is not an integer');
        refused(() => host.register(add, {worker: 1}), TypeError, 'there is no option worker');
        host.close();

        const above = new Pto.Worker({level: 4}), below = [0, 1].map(() => new Pto.Worker({level: 3}));
        below.forEach(worker => above.add_worker(worker));
        const run = Pto.ImportedFunction.new_for_symbol(Pto.CallableKind.ORCHESTRATION, `${library}:throw_group`);
        const own = above.register(run, {workers: [below[1]]});
        refused(() => above.run(orch => orch.submit_next_level(own, [], {worker: 0})), Pto.Error, 'is not registered on worker 0 of L4/0, but on 1');
        refused(() => above.run(orch => orch.submit_next_level(own, [], {worker: below[1]})), GLib.Error, 'on L4/0/L3/1 failed');
        refused(() => above.run(orch => orch.submit_next_level(own, [], {worker: host})), TypeError, 'L3/0 is not below L4/0');
        for (const wrong of ['x', {}, 2 ** 32 + 1, 0.5])
            refused(() => above.run(orch => orch.submit_next_level(own, [], {worker: wrong})), TypeError, 'is not the id of a worker');
        refused(() => above.register(run, {workers: host}), TypeError, 'L3/0 is not below L4/0');
        refused(() => above.register(add, {workers: below[0]}), TypeError, 'L4/0/L3/0 is no SUB worker, and "throw_group" is for those');
        refused(() => above.register(add, {workers: [below[1]]}), TypeError, 'L4/0/L3/1 is no SUB worker');
        above.close();
    },

    // Workers that are ranks of one job, of which none is launched, and what stays at one.
    ranks() {
        const host = new Pto.Worker({level: 4});
        const [first, second] = host.add_remote_job(['local:', 'local:']);
        equal([host.get_child(0) === first, host.get_child(1) === second, host.get_n_workers()].join(), 'true,true,2', 'ranks');
        equal(second.dup_remote_address(), 'local:', 'the address of one');
        refused(() => host.add_remote_job([]), Pto.Error, 'a job has no ranks');
        refused(() => host.add_remote_job(['local:', 'nowhere']), Pto.Error, '"nowhere" is no address of a remote worker');
        equal(host.get_n_workers(), 2, 'after that');
        host.close();

        const [, path] = GLib.file_open_tmp('XXXXXX.ini');
        GLib.file_set_contents(path, '[worker one]\n');
        const file = Pto.ClusterFile.new(path);
        GLib.unlink(path);
        equal([file.dup_name(0), file.dup_address(0)].join(), 'one,local:', 'a place');
        for (const name of ['dup_name', 'dup_address', 'dup_command'])
            refused(() => file[name](1), RangeError, `${name}: 1 is none of the 1, which count from 0`);

        const above = new Pto.Worker({level: 3, n_sub_workers: 1, devices: 1});
        above.run(orch => {
            const x = orch.make_tensor_at(0, Pto.Dtype.FLOAT32, [4]);
            equal(x.view([2], [1]).get_worker(), 0, 'where a view stays');
            refused(() => orch.make_tensor_at(1, Pto.Dtype.FLOAT32, [4]), Pto.Error, 'a tensor can not stay at worker 1');
            refused(() => orch.allreduce([x], Pto.Reduction.SUM), Pto.Error, 'there is one at each rank of one job');
        });
        above.close();
    },

    // A group whose members have arguments of their own, and one its core.
    members() {
        const buffers = [0, 1].map(() => Pto.Buffer.new(4 * elements));
        for (const isolate of [false, true]) {
            const worker = new Pto.Worker({isolate});
            worker.set_parameter('trace', 1);
            const submit = orch => {
                const lists = buffers.map((buffer, i) => {
                    const args = new Pto.TaskArgs();
                    args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.OUTPUT_EXISTING);
                    args.add_scalar_float(i + 1);
                    return args;
                });
                orch.submit_group_members([fill, fill], lists, [7, -1]);
                refused(() => orch.submit_group_members([fill, fill], lists, [7, 7]), Pto.Error, 'members 0 and 1 of a group are both for AIV7');
                refused(() => orch.submit_group_members([fill, fill], lists, [7, 1.5]), TypeError, '1.5 is not an integer');
                refused(() => orch.submit_group_members([fill], lists), Pto.Error, 'a group has 1 kernels, 2 lists of arguments');
            };
            for (let i = 0; i < 2; i++) {
                worker.run(submit);
                equal(buffers.map(buffer => floats(buffer)[elements - 1]).join(), '1,2', 'the numbers');
                const list = worker.trace.list_tasks().get_item(0).list_members();
                const members = Array.from({length: list.get_n_items()}, (_, j) => list.get_item(j));
                const cores = members.map(member => worker.trace.list_cores().get_item(member.core).name);
                check(new Error(cores.join()), Error, 'AIV7');
                equal(members.length, 2, 'members');
            }
            worker.close();
        }
    },

    // Memory at once, a value in it, and tasks that are ordered by their names only.
    memory() {
        for (const isolate of [false, true]) {
            for (const backend of ['par', 'det', 'threads']) {
                const worker = new Pto.Worker({isolate});
                const buffer = Pto.Buffer.new(4 * elements);
                const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
                worker.set_parameter('backend', backend);
                worker.run(orch => {
                    const made = orch.alloc(Pto.Dtype.INT16, [3]);
                    equal(made.address % 1024, 0, 'the address');
                    orch.fill(made, -7);
                    equal(orch.get_element(made, [2]), -7, 'what it was filled with');
                    orch.set_element(made, [1], 300);
                    equal(orch.get_element(made, [1]), 300, 'what was written');
                    refused(() => orch.fill(made, 0.5), Pto.Error, 'what a tensor is filled with is 0.5');
                    refused(() => orch.fill(made, 'a'), Pto.Error, 'no number of the type int16');
                    orch.fill(tensor, 0.25);
                    const first = orch.last_task;
                    orch.with_manual_scope(inner => {
                        inner.fill_after(tensor, 8, [first]);
                        inner.fill_after(made, 9, []);
                    });
                    equal(orch.get_element(tensor, [1]), 8, 'what came after');
                    refused(() => orch.fill_after(tensor, 1, [-1]), TypeError, 'after: -1 is not an integer of 0 to');
                    refused(() => orch.fill_after(tensor, 1, 1), TypeError, 'after: 1 is not a list of integers');
                    orch.with_manual_scope(inner => {
                        const args = new Pto.TaskArgs();
                        args.add_tensor(tensor, Pto.Direction.OUTPUT_EXISTING);
                        args.add_scalar_float(1.5);
                        args.add_after(first);
                        inner.submit(fill, args);
                    });
                    orch.begin_manual_scope();
                    orch.end_scope();
                }, null, null, null);
                equal(floats(buffer).join(), new Array(elements).fill(1.5).join(), 'the last of two');
                worker.close();
            }
        }
    },

    'tensors of workers are combined where no function of JavaScript runs': () => {
        const host = new Pto.Worker({level: 3, n_sub_workers: 1});
        const tensors = [1, 2, 4].map(value => {
            const array = Pto.Buffer.array([4], 'int32');
            array.fill(value);
            return array;
        });
        host.run((orch, ...all) => {
            orch.allreduce(all, Pto.Reduction.MAX);
            orch.allreduce(all, Pto.Reduction.SUM);
            refused(() => orch.broadcast(all, 3), Pto.Error, 'root is 3, and there are 3 tensors');
        }, ...tensors);
        equal(tensors.map(array => array.join()).join(' '), '12,12,12,12 12,12,12,12 12,12,12,12', 'sums');
        host.close();
    },
};

await main(tests);
