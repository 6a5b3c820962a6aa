// test_remote.js: has JavaScript of remote workers what it has of others?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

import {equal, main, refused} from './tap.js';

const [here] = System.programArgs;
const roots = GLib.build_filenamev([here, 'remote-root']);
const PYTHON = GLib.getenv('PTO_TEST_PYTHON') ?? '';

const tests = {
    // As elsewhere: by their names, or as in C.
    'options': () => {
        const host = new Pto.Worker({level: 4});
        const remote = host.add_remote_worker('local:', {devices: 2, sub_workers: 1, id: 7n, platform: 'a5sim', roots: '.', shell: null});
        equal([remote.dup_path(), remote.get_n_workers(), remote.n_sub_workers, remote.platform].join(), 'L4/0/L3/7,2,1,a5sim', 'as it was said');
        equal(host.add_remote_worker('local:').dup_path(), 'L4/0/L3/0', 'without options');
        equal(host.add_remote_worker('local:', null).dup_path(), 'L4/0/L3/1', 'with none');
        equal(host.add_remote_worker('local:', new GLib.Variant('a{sv}', {devices: GLib.Variant.new_uint32(3)})).get_n_workers(), 3, 'as in C');
        equal(host.add_remote_job('local:', {sub_workers: 2}).map(rank => rank.n_sub_workers).join(), '2', 'of a job of one');
        equal(host.add_remote_job(['local:', 'local:'], {devices: 1}).map(rank => rank.get_n_workers()).join(), '1,1', 'of a job');
        equal(host.add_remote_job(['local:']).length, 1, 'of a job without options');
        const add = options => host.add_remote_worker('local:', options), name = 'Pto.Worker.add_remote_worker';
        for (const [wrong, part] of [
            [{devcies: 1}, 'there is no option devcies: there are devices, id, sub_workers,'],
            [{devices: -1}, 'devices: -1 is not an integer of 0 to 4294967295'],
            [{devices: '2'}, 'devices: "2" is not an integer'],
            [{roots: [3]}, 'roots: 3 is not a text'],
            [{roots: 3}, 'roots: 3 is not a list of texts'],
            [{platform: 5}, 'platform: 5 is not a text'],
            [{shell: 1}, 'shell: 1 is not true or false'],
            [3, '3 is no object of options, as {devices: 2} is'],
        ])
            refused(() => add(wrong), Error, wrong.devcies ? `${name}: ${part}` : part);
        refused(() => host.add_remote_worker(), TypeError, `${name}: address: undefined is not a text`);
        refused(() => host.add_remote_worker('local:', {}, {}), TypeError, `${name}: `);
        refused(() => host.add_remote_job(null), TypeError, 'Pto.Worker.add_remote_job: addresses: null is not a list of texts');
        refused(() => add({trusted_fabric: 'ucxx'}), Pto.Error, '"ucxx" is no engine of a trusted fabric');
        equal(host.get_n_workers(), 8, 'nothing of what was refused was added');
        host.close();
    },

    'functions are imported from its roots': () => {
        if (PYTHON === '')
            return;
        const host = new Pto.Worker({level: 4}), x = Pto.Buffer.array(3);
        const remote = host.add_remote_worker('local:', {roots, python: PYTHON}), other = new Pto.Worker({level: 3});
        const fill = host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, 'remote_steps:fill'));
        host.run((orch, y) => {
            const staying = orch.make_tensor_at(0, [3]);
            equal([staying.dtype, staying.shape.join()].join(), `${Pto.Dtype.FLOAT32},3`, 'float32, where nothing is said');
            equal(orch.make_tensor_at(0n, [2, 2], 'int64').dtype, Pto.Dtype.INT64, 'as by make_tensor()');
            equal(orch.make_tensor_at(0, Pto.Dtype.INT8, [2]).dtype, Pto.Dtype.INT8, 'in the order of C');
            for (const wrong of [null, undefined, {}, '0', true, 0.5])
                refused(() => orch.make_tensor_at(wrong, [3]), TypeError, 'Pto.Orchestrator.make_tensor_at: worker: ');
            for (const wrong of [{}, '0', true, 0.5])
                refused(() => orch.submit_next_level(fill, [y.write_existing(), 3n], {worker: wrong}), TypeError, 'worker: ');
            for (const wrong of [null, undefined, '0'])
                refused(() => orch.submit_next_level(fill, null, null, wrong), TypeError, 'Pto.Orchestrator.submit_next_level: worker: ');
            orch.submit_next_level(fill, [y.subarray(0, 1).write_existing(), 3n], {worker: 0});
            // By itself, too.
            equal(orch.make_tensor_at(remote, [3]).get_worker(), 0, 'at which worker');
            orch.submit_next_level(fill, [y.subarray(1, 2).write_existing(), 4n], {worker: remote});
            orch.submit_next_level_group(fill, [[y.subarray(2, 3).write_existing(), 5n]], {workers: [remote]});
            for (const call of [() => orch.make_tensor_at(other, [3]), () => orch.submit_next_level(fill, [y.write_existing(), 3n], {worker: other})])
                refused(call, TypeError, 'L3/0 is not below L4/0: name one that is');
        }, x);
        equal(x.join(), '3,4,5', 'it was run there');
        other.close();
        host.close();
    },

    'a trace says what travelled, of a chain of updates what goes there and what comes back': () => {
        if (PYTHON === '')
            return;
        const host = new Pto.Worker({level: 4}), x = Pto.Buffer.array([1 << 16], 'float32');
        host.add_remote_worker('local:', {roots, python: PYTHON});
        host.set_parameter('trace', '1');
        const add = host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, 'remote_steps:add_in_place'));
        host.run((orch, y) => {
            for (let i = 0; i < 4; i++)
                orch.submit_next_level(add, [y.update(), 1n], {worker: 0});
        }, x);
        equal([x[0], x[65535]].join(), '4,4', 'all of them have run');
        const trace = host.trace, run = host.dup_statistics(), tasks = [...trace.list_tasks()];
        const sums = of => [of.get_bytes_sent(), of.get_bytes_received(), of.get_bytes_saved()].join();
        equal(sums(trace), sums(run), 'as the statistics have it');
        equal(sums(trace.list_cores().get_item(0)), sums(trace), 'of its only worker');
        equal(tasks.map(task => task.get_bytes_sent()).join(), `${1 << 18},0,0,0`, 'it is sent once');
        equal(tasks[3].get_bytes_received(), 1 << 18, 'and is here in the end');
        equal(trace.explain('0').includes('262144 bytes sent to L3/0 from '), true, 'in words');
        host.close();
    },

    'memory of a remote worker is read and written, and is not here': () => {
        const host = new Pto.Worker({level: 4}), remote = host.add_remote_worker('local:');
        const buffer = remote.alloc_buffer(8), tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.INT16, [4]);
        buffer.write(2, new Uint8Array([1, 2, 3]));
        equal([...buffer.read(0, 8).toArray()].join(), '0,0,1,2,3,0,0,0', 'what was written');
        equal([buffer.is_remote(), tensor.is_remote()].join(), 'true,true', 'where it is');
        refused(() => buffer.ref_bytes(), TypeError, 'memory of a remote worker, and is not here');
        refused(() => tensor.to_array(), GLib.Error, 'memory of a remote worker, and is not here');
        const address = remote.malloc(16);
        remote.copy_to(address + 8, new Uint8Array([7]));
        equal([...remote.copy_from(address + 7, 2).toArray()].join(), '0,7', 'by its number');
        equal(remote.free(address), true, 'given back');
        refused(() => remote.copy_from(address, 2), Pto.Error, 'do not lie in memory of L4/0/L3/0');
        host.close();
    },

    'memory of a remote worker is named by a token, and copied': () => {
        const host = new Pto.Worker({level: 4}), [remote, other] = [0, 1].map(() => host.add_remote_worker('local:'));
        const buffer = remote.alloc_buffer(8), token = buffer.export(2, 4), bytes = (of, size) => [...of.read(0, size).toArray()].join();
        buffer.write(2, new Uint8Array([1, 2, 3]));
        equal([buffer.export().split(':')[6], buffer.export(5).split(':')[6], token.split(':')[2]].join(), '8,3,L4/0/L3/0', 'what is named');
        const part = remote.import_buffer(token);
        equal(bytes(part, 4), '1,2,3,0', 'the same memory');
        part.write(3, new Uint8Array([9]));
        equal(bytes(buffer, 8), '0,0,1,2,3,9,0,0', 'in both directions');
        refused(() => other.import_buffer(token), Pto.Error, 'memory of L4/0/L3/0, which L4/0/L3/1 does not share');
        refused(() => remote.import_buffer(`${token}0`), Pto.Error, 'is no token of a buffer');
        refused(() => buffer.export(8), Pto.Error, '0 bytes of a buffer can not be exported');
        const there = other.alloc_buffer(8), here = Pto.Buffer.new(8);
        buffer.copy_to(there);
        there.copy_to(there, 2, 0);
        there.copy_to(here, 1, 4, 3);
        equal(bytes(here, 8), '0,0,0,0,2,3,9,0', 'by way of two workers');
        refused(() => there.copy_to(here, 0, 1), Pto.Error, 'reach beyond a buffer of 8 bytes');
        host.close();
    },

    'what is closed, or has started, gets nobody more': () => {
        const host = new Pto.Worker({level: 4}), add = () => host.add_remote_worker('local:');
        add();
        host.start(null);
        equal(refused(add, Pto.Error, 'L3/0 can not be added: the worker above it has started already: by start(), ').code, Pto.Error.BUSY, 'started');
        host.close();
        equal(refused(add, Pto.Error, 'the worker above it is closed').code, Pto.Error.CLOSED, 'closed');
    },

    'memory there is written from arrays': () => {
        const host = new Pto.Worker({level: 4}), remote = host.add_remote_worker('local:');
        const buffer = remote.alloc_buffer(16n), address = remote.malloc(8n);
        buffer.write(4n, new Float32Array([1, 2]));
        equal(new Float32Array(buffer.read(0, 16).toArray().slice().buffer).join(), '0,1,2,0', 'a buffer');
        remote.copy_to(address, new Int16Array([1, 2, 3, 4]).subarray(1, 3));
        equal(new Int16Array(remote.copy_from(address, 8n).toArray().slice().buffer).join(), '2,3,0,0', 'an address');
        host.close();
    },

    'graphs work on memory there': async () => {
        if (PYTHON === '')
            return;
        const host = new Pto.Worker({level: 4});
        const [remote, other] = [0, 1].map(() => host.add_remote_worker('local:', {roots, python: PYTHON}));
        const named = name => host.register(Pto.ImportedFunction.new(Pto.CallableKind.ORCHESTRATION, `remote_steps:${name}`));
        const [add, copy] = ['add_in_place', 'copy'].map(named), here = Pto.Buffer.array(4);
        const make = worker => worker.alloc_buffer(16), over = (buffer, n = 4, at = 0) => Pto.Tensor.new_for_buffer(buffer, 4 * at, Pto.Dtype.FLOAT32, [n]);
        const found = buffer => new Float32Array(buffer.read(0, 16).toArray().slice().buffer).join();
        const [kept, given, elsewhere] = [make(remote), make(remote), make(other)];
        const graph = host.capture((orch, x, y) => {
            orch.submit_next_level(add, [x.update(), 1n], {worker: 0});
            orch.submit_next_level(add, [over(kept, 2, 1).update(), 10n], {worker: 0});
            orch.submit_next_level(copy, [over(kept).read(), y.write_existing()], {worker: 0});
            return true;
        }, over(given, 2), here);
        equal([graph.n_arguments, graph.n_tasks].join(), '2,3', 'what is captured');
        host.run(graph, over(given, 2), here);
        equal(here.join(), '0,10,10,0', 'a launch');
        await host.run_async(graph, over(given, 2, 2), here);
        host.run(graph, over(given, 2, 2), here);
        equal([here.join(), found(kept), found(given)].join(' '), '0,30,30,0 0,30,30,0 1,1,2,2', 'more of them');
        refused(() => host.run(graph, over(elsewhere, 2), here), Pto.Error, 'task 0 of the graph ("add_in_place"): argument 0 of the graph is memory of L4/0/L3/1');
        refused(() => host.run(graph, over(kept, 2), here), Pto.Error, 'argument 0 of the graph overlaps memory that task 1 has from its capture');
        equal(found(kept), '0,30,30,0', 'nothing of what was refused was run');
        host.close();
    },
};

await main(tests);
