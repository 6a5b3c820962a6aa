// test_javascript.js: does the override do what JavaScript expects?
// SPDX-License-Identifier: LGPL-2.1-or-later
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

const [here] = System.programArgs;
const fill = Pto.Kernel.new(Pto.CoreType.AIV, GLib.build_filenamev([here, 'fill.c']), null);
const elements = 16;

function equal(found, expected, what) {
    if (!Object.is(found, expected))
        throw new Error(`${what}: ${found} is not ${expected}`);
}

function check(error, type, part) {
    if (!(error instanceof type) || !error.message.includes(part))
        throw error;
    if (error instanceof Pto.Error)
        equal(error.name, 'Pto.Error', 'the name of an error');
}

// As a program writes it.
function shown(value) {
    return typeof value === 'string' ? `"${value}"` : typeof value === 'bigint' ? `${value}n` : String(value);
}

function refused(call, type, part) {
    try {
        call();
    } catch (error) {
        check(error, type, part);
        return;
    }
    throw new Error(`not refused: ${part}`);
}

async function rejected(promise, type, part) {
    try {
        await promise;
    } catch (error) {
        check(error, type, part);
        return;
    }
    throw new Error(`not rejected: ${part}`);
}

function chip(backend) {
    const worker = Pto.Worker.new_chip('a2a3sim');
    worker.set_parameter('backend', backend);
    worker.start(null);
    return worker;
}

function submit_fill(orch, buffer, value) {
    const args = new Pto.TaskArgs();
    args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.OUTPUT_EXISTING);
    args.add_scalar_float(value);
    orch.submit(fill, args);
}

const flagged = Pto.Kernel.new(Pto.CoreType.AIV, GLib.build_filenamev([here, 'fill.c']), null);
flagged.set_include_dirs([here]);
flagged.set_compiler_flags(['-O1', '-DVALUE="a b"']);

const columns = Pto.Tensor.new_external(4096, Pto.Dtype.FLOAT64, [6, 8]).as_strided([6, 2], [8, 3], 1);
equal(columns.get_strides().join(), '8,3', 'strides');
equal(columns.get_address(), 4104, 'the address of the first element');

const chip_dir = GLib.Dir.make_tmp('pto-js-XXXXXX');
const chip_file = GLib.build_filenamev([chip_dir, 'chip.ini']);
GLib.file_set_contents(chip_file, '[platform]\nclusters=5\n');
equal(Pto.Platform.lookup(chip_file).get_n_clusters(), 5, 'clusters of a file');
equal(Pto.Worker.new_chip(chip_file).get_platform(), chip_file, 'the platform is the file');
GLib.unlink(chip_file);
GLib.rmdir(chip_dir);

const floats = buffer => new Float32Array(buffer.ref_bytes().toArray().buffer);

// Calling these gives something that would have to be awaited or taken from, by nobody.
const later = [
    [async () => true, 'the function is of the kind AsyncFunction'],
    [function* graph() {}, '"graph" is of the kind GeneratorFunction'],
    [async function* graph() {}, '"graph" is of the kind AsyncGeneratorFunction'],
];
const later_results = [
    [() => Promise.resolve(true), 'has returned a promise'],
    [() => [1].values(), 'has returned an iterator'],
];

const tests = {
    sizes() {
        const worker = chip('par');
        for (const core of ['aiv', undefined, 1.5])
            refused(() => Pto.Kernel.new(core, fill.path, null), TypeError, 'is none of Pto.CoreType');
        refused(() => Pto.Kernel.new(7, fill.path, null), TypeError, 'Pto.Kernel.new: 7 is none of Pto.CoreType');
        for (const name of ['alloc_buffer', 'malloc'])
            refused(() => worker[name](10.7), TypeError, `${name}: 10.7 is not a whole number`);
        worker.close();
    },

    // What GJS makes another number of, or drops, is refused; so is what would be split into letters.
    inexact() {
        const buffer = Pto.Buffer.new(4 * elements), args = new Pto.TaskArgs(), config = new Pto.CallConfig();
        const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        const {FLOAT32} = Pto.Dtype;
        const kernel = Pto.Kernel.new(Pto.CoreType.AIV, fill.path, null);
        const worker = chip('par');
        for (const wrong of [1.5, true, NaN]) {
            const calls = [() => args.set_condition(tensor, [wrong]), () => args.add_after(wrong), () => tensor.view([wrong], [0]),
                () => tensor.view([1], [wrong]), () => tensor.reshape([wrong]), () => tensor.as_strided([1], [1], wrong),
                () => Pto.Buffer.new(wrong), () => Pto.Tensor.new(FLOAT32, [wrong]), () => Pto.Worker.new_host(3, wrong, 0, null),
                () => kernel.set_n_args(wrong), () => (kernel.n_args = wrong), () => (config.block_dim = wrong),
                () => Pto.Tensor.new_for_buffer(buffer, wrong, FLOAT32, [1])];
            for (const call of calls)
                refused(call, TypeError, `${String(wrong)} is not an integer`);
        }
        refused(() => new Pto.Worker({level: 3.5}), TypeError, 'level: 3.5 is not an integer');
        refused(() => args.set_condition(tensor, ['1']), TypeError, 'a text is not an integer');
        for (const wrong of [-1, 2 ** 53, null, {}])
            refused(() => args.set_condition(tensor, [wrong]), TypeError, `index: ${String(wrong)} is not an integer of 0 to 2 ** 53 - 1`);
        refused(() => args.set_condition(tensor, 1), TypeError, 'Pto.TaskArgs.set_condition: index: 1 is not a list of integers');
        for (const wrong of [-1, 99, 1.5])
            refused(() => args.add_tensor(tensor, wrong), TypeError, `Pto.TaskArgs.add_tensor: ${wrong} is none of Pto.Direction`);
        for (const wrong of [{}, 5, 'x'])
            refused(() => args.add_tensor(wrong, 0), TypeError, 'Pto.TaskArgs.add_tensor: ');
        refused(() => Pto.Tensor.new(FLOAT32, [-1]), TypeError, 'Pto.Tensor.new: shape: -1 is not an integer of 0');
        worker.run(orch => {
            for (const wrong of [-1, 2 ** 32, 1.5, null, '1'])
                refused(() => (orch.priority = wrong), TypeError, `set_priority: ${shown(wrong)} is not an integer of 0 to 3`);
            for (const wrong of [-1, {}]) {
                refused(() => orch.get_element(tensor, [wrong]), TypeError, `get_element: index: ${wrong} is not an integer of 0`);
                refused(() => orch.set_element(tensor, [wrong], 1), TypeError, `set_element: index: ${wrong} is not an integer of 0`);
            }
            refused(() => orch.alloc(FLOAT32, -1), TypeError, 'alloc: shape: -1 is not a list of integers');
            refused(() => orch.fill(tensor, undefined), TypeError, 'Pto.Orchestrator.fill: ');
            refused(() => orch.submit(5, null), TypeError, "Pto.Orchestrator.submit: Expected an object of type PtoCallable for argument 'kernel'");
            refused(() => orch.dup_cluster_cores(0, 2), TypeError, 'dup_cluster_cores: 2 is none of Pto.CoreType');
        }, null, null, null);
        for (const wrong of [null, '2', undefined])
            refused(() => (config.block_dim = wrong), TypeError, 'not an integer');
        config.enable_pmu = true;
        equal(config.enable_pmu, 1, 'a switch');
        refused(() => worker.run(orch => {
            submit_fill(orch, buffer, 1);
            orch.submit(fill, args, {after: [0]});
        }, null, null, null), TypeError, 'a TaskArgs says itself what its task is, after');
        refused(() => worker.run(orch => orch.submit(fill, {afer: [0]}), null, null, null), TypeError, 'submit: there is no option afer: there are after, when');
        refused(() => worker.run(orch => orch.submit(fill, args, args)), TypeError, 'argument 0: [Pto.TaskArgs: ');
        refused(() => worker.run(orch => orch.tensor(FLOAT32, [1.5]), null, null, null), TypeError, '1.5 is not an integer');
        kernel.include_dirs = here;
        equal(kernel.include_dirs.join('|'), here, 'one directory');
        kernel.set_compiler_flags(`-O1 -DVALUE='a b'`);
        equal(kernel.compiler_flags.join('|'), '-O1|-DVALUE=a b', 'one text');
        refused(() => (kernel.compiler_flags = '-O1 -c'), Pto.Error, 'the flag -c can not be used');
        kernel.set_compiler_flags(' ');
        equal(kernel.compiler_flags, null, 'no words');
        worker.close();
        const parameters = Pto.Worker.new_chip('a2a3sim');
        parameters.set_parameter('clusters', 3);
        parameters.set_parameter('trace', true);
        parameters.set_parameter('task-window', [16, 32, 64, 128]);
        equal(parameters.dup_parameter('task-window'), '16,32,64,128', 'of rings');
        equal(`${parameters.dup_parameter('clusters')} ${parameters.dup_parameter('trace')}`, '3 1', 'parameters');
        refused(() => parameters.set_parameter('clusters', 1.5), Pto.Error, '1.5');
        parameters.close();
    },

    schedule() {
        const worker = chip('det'), buffer = Pto.Buffer.new(4 * elements);
        const graph = orch => {
            for (let value = 1; value <= 3; value++) {
                const args = new Pto.TaskArgs();
                args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.NO_DEP);
                args.add_scalar_float(value);
                orch.submit(fill, args);
            }
        };
        for (const [schedule, last] of [['0:0-last', 1], ['0:1-after-0:2', 2], ['in-order', 3], ['0:1-last,0:0-after-0:1', 1]]) {
            worker.set_parameter('schedule', schedule);
            equal(worker.dup_parameter('schedule'), schedule, 'the schedule');
            worker.run(graph, null, null, null);
            equal(floats(buffer)[0], last, schedule);
        }
        refused(() => worker.set_parameter('schedule', '0:1-last;'), Pto.Error, '"0:1-last;"');
        worker.set_parameter('schedule', '');
        worker.close();
        const other = chip('par');
        refused(() => other.set_parameter('schedule', 'in-order'), Pto.Error, 'needs the back end det');
        other.close();
    },

    // 0 of what is no number would be a choice, too.
    choices() {
        const {FLOAT32} = Pto.Dtype, {AIV} = Pto.CoreType;
        const args = new Pto.TaskArgs(), graph = new Pto.Graph(), tensor = Pto.Tensor.new(FLOAT32, [4]);
        const buffer = Pto.Buffer.new(16), kernel = Pto.Kernel.new(AIV, fill.path, null);
        const worker = chip('par');
        for (const wrong of ['max', undefined, null]) {
            const calls = [() => args.add_reduction(tensor, wrong), () => args.add_tensor(tensor, wrong),
                () => Pto.Tensor.new(wrong, [4]), () => Pto.Tensor.new_for_buffer(buffer, 0, wrong, [4]),
                () => Pto.Tensor.new_external(4096, wrong, [4]), () => graph.add_argument(wrong, [4]),
                () => graph.make_tensor(wrong, [4]), () => kernel.set_signature([wrong]),
                () => Pto.Dtype.get_size(wrong), () => Pto.ImportedFunction.new(wrong, 'a:b'), () => Pto.Platform.lookup('a5sim').get_cores_per_cluster(wrong)];
            for (const call of calls)
                refused(call, TypeError, `${shown(wrong)} is none of Pto.`);
            for (const method of ['tensor', 'make_tensor', 'alloc']) {
                refused(() => worker.run(orch => orch[method](wrong, [4]), null, null, null), TypeError,
                    `${shown(wrong)} is none of Pto.Dtype`);
            }
            refused(() => worker.run(orch => orch.dup_cluster_cores(0, wrong), null, null, null), TypeError,
                `Pto.Orchestrator.dup_cluster_cores: ${shown(wrong)} is none of Pto.CoreType`);
        }
        equal(args.get_n_args(), 0, 'nothing was added');
        kernel.set_signature([Pto.Direction.INOUT]);
        equal(kernel.get_signature()[0], Pto.Direction.INOUT, 'a list');
        kernel.set_signature(null);
        worker.close();
    },

    exceptions() {
        const one = Pto.Exception.new('KeyError', 'two', 'at home', []);
        const group = Pto.Exception.new('Group', '', null, [one]);
        equal(one.message, 'two', 'message');
        equal(String(one), '[Pto.Exception: KeyError: two]', 'text');
        equal(String(group), '[Pto.Exception: Group]', 'text of a group');
        equal(group.get_member(0).type_name, 'KeyError', 'member');
        equal(group.get_member(1), null, 'no member');
    },

    lists() {
        const worker = Pto.Worker.new_chip('a2a3sim');
        const buffer = Pto.Buffer.new(elements * 4);
        worker.set_parameter('trace', '1');
        worker.run(orch => {
            submit_fill(orch, buffer, 1);
            submit_fill(orch, buffer, 2);
        }, null, null, null);
        const trace = worker.trace;
        equal([...trace.list_tasks()].map(task => task.name).join(), 'fill,fill', 'tasks');
        equal([...trace.list_edges()].length, 1, 'edges');
        equal([...trace.list_cores()].length, trace.n_cores, 'cores');
        equal(`${[trace.list_tasks(), trace.list_edges(), worker.children].map(String)}`,
            '[2 of Pto.TraceTask],[1 of Pto.TraceEdge],[0 of Pto.Worker]', 'texts');
        equal(String(Pto.Platform.lookup('a2a3sim')), '[Pto.Platform: a2a3sim: 24 AIC and 48 AIV cores in 24 clusters, 4 AICPU threads]', 'platform');
        worker.close();
    },

    indices() {
        const worker = Pto.Worker.new_chip('a2a3sim');
        worker.set_parameter('trace', '1');
        const args = new Pto.TaskArgs();
        args.add_scalar_signed(-2);
        equal(args.get_scalar_value(0), -2, 'the last one');
        worker.run(orch => submit_fill(orch, Pto.Buffer.new(elements * 4), 1));
        const {statistics, trace} = worker;
        equal(statistics.get_ring_tasks(0), 1, 'ring 0');
        equal(statistics.get_n_cores(Pto.CoreType.AIV), 48, 'cores');
        for (const [where, n, names] of [
            [args, 1, ['direction', 'tensor', 'scalar', 'scalar_kind', 'scalar_double', 'scalar_value'].map(name => `get_${name}`)],
            [statistics, Pto.N_RINGS, ['get_last_task_alive', 'get_ring_tasks', 'get_heap_peak']],
            [statistics, 2, ['get_busy_ns', 'get_waited_ns', 'get_n_cores', 'get_utilization']],
            [trace, 72, ['dup_core_name', 'get_core_utilization']],
        ]) {
            for (const name of names) {
                for (const wrong of [n, -1, 0.5, 999])
                    refused(() => where[name](wrong), Error, String(wrong));
                refused(() => where[name](n), RangeError, `${name}: ${n} is none of the ${n}, which count from 0`);
            }
        }
        worker.close();
    },

    terms() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            const [a, b] = [0, 1].map(() => Pto.Buffer.new(elements * 4));
            const ids = [];
            floats(a).fill(0);
            worker.run(orch => {
                const args = new Pto.TaskArgs();
                const submit = (buffer, value) => {
                    args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.OUTPUT_EXISTING);
                    args.add_scalar_float(value);
                    orch.submit(fill, args);
                    ids.push(orch.last_task);
                    args.reset();
                };
                equal(orch.last_task, -1, 'no task');
                const element = Pto.Tensor.new_for_buffer(a, 0, Pto.Dtype.FLOAT32, [elements]);

                args.set_condition(element, [0]); // it is 0 as yet
                submit(b, 3);
                submit(a, 4);
                args.add_after(ids[1]);
                orch.submit_order(args);
                ids.push(orch.last_task);
                args.reset();
                args.add_after(ids[2]);
                args.set_condition(element, [elements - 1]);
                submit(b, 5);
                equal(orch.last_task, ids[3], 'the last task');
            }, null, null, null);
            equal(ids.join(), '0,1,2,3', 'ids');
            equal(floats(a)[0], 4, 'a');
            equal(floats(b)[0], 5, 'b');
            worker.close();
        }
    },

    async run_progress() {
        const buffer = new Pto.Buffer(4 * elements);
        const worker = chip('par');
        const told = [];
        equal(worker.progress, null, 'no run');
        worker.progress_interval = 1;
        worker.connect('run-progress', (that, done, submitted, failed) => {
            equal(that, worker, 'whose');
            told.push([done, submitted, failed]);
        });
        let seen = null;
        const graph = orch => {
            const deadline = GLib.get_monotonic_time() + 60e6;
            const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
            let n = 0;
            while ((n++ === 0 || told.length < 2) && GLib.get_monotonic_time() < deadline) {
                submit_fill(orch, buffer, n);
                orch.get_element(tensor, [0]);
            }
            seen = worker.progress;
        };
        worker.run(graph, null, null, null);
        const {tasks} = worker.statistics;
        equal(told.length > 2, true, 'how often');
        equal(told.at(-1).join(), [tasks, tasks, 0].join(), 'the last');
        equal([seen.done, seen.submitted, seen.failed].join(), [tasks, tasks, 0].join(), 'at the end of the function');
        const before = told.length;
        await worker.run_async(graph, null, null, null);
        equal(told.length > before, true, 'of a promise');
        const {tasks: later_tasks} = worker.statistics;
        equal(told.at(-1).join(), [later_tasks, later_tasks, 0].join(), 'the last of a promise');
        worker.close();
    },

    async later() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            for (const [graph, part] of [...later, ...later_results]) {
                refused(() => worker.run(graph, null, null, null), TypeError, part);
                await rejected((async () => worker.run_async(graph, null, null, null))(), Error, part);
            }
            worker.close();
        }
        for (const type of [Pto.OrchestrationFunction, Pto.SubFunction]) {
            for (const [func, part] of later)
                refused(() => type.new('later', func), TypeError, part);
        }
        const host = Pto.Worker.new_host(3, 0, 0, 'a2a3sim');
        for (const [func, part] of later_results) {
            const handle = host.register(Pto.OrchestrationFunction.new('later', func), null);
            refused(() => host.run_callable(handle, null, null, null), TypeError, part);
        }
        host.close();
    },

    // As in Python: only false.
    results() {
        const worker = chip('par');
        for (const result of [undefined, null, true, 0, ''])
            equal(worker.run(() => result, null, null, null), true, `returned ${result}`);
        refused(() => worker.run(() => false, null, null, null), Pto.Error, 'did not say why');
        refused(() => worker.run(() => {
            throw new RangeError('my own words');
        }, null, null, null), RangeError, 'my own words');
        refused(() => worker.run(3, null, null, null), Error, 'function');
        worker.close();
    },

    // A scope ends however its function does; a task is in the ring of its depth.
    scopes() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            const buffer = Pto.Buffer.new(4 * elements);
            worker.run(orch => {
                submit_fill(orch, buffer, 1);
                orch.with_scope(inner => submit_fill(inner, buffer, 2));
                refused(() => orch.with_scope(() => {
                    orch.begin_scope();
                    throw new RangeError('my own words');
                }), Error, 'my own words');
                submit_fill(orch, buffer, 3);
            }, null, null, null);
            equal([0, 1, 2].map(ring => worker.statistics.get_last_task_alive(ring)).join(), '2,1,0', 'rings');
            equal(floats(buffer)[0], 3, 'last');
            refused(() => worker.run(orch => {
                orch.with_scope(() => false);
            }, null, null, null), Pto.Error, 'the function of a scope failed');
            refused(() => worker.run(orch => orch.with_scope(async () => {}), null, null, null), TypeError, 'AsyncFunction');
            worker.close();
        }
    },

    // GJS would free the inner callbacks twice; a critical message ends this program.
    nested() {
        for (const make of [...['par', 'det', 'threads'].map(backend => () => chip(backend)), () => new Pto.Worker({isolate: true})]) {
            const outer = make(), inner = make(), words = [];
            const buffers = [0, 1].map(() => Pto.Buffer.new(4 * elements));
            outer.run(orch => {
                orch.with_scope(() => {
                    orch.with_scope(() => {
                        submit_fill(orch, buffers[0], 1);
                        orch.begin_scope();
                        orch.with_scope(() => submit_fill(orch, buffers[0], 2));
                        words.push('a');
                    });
                    orch.with_scope(() => submit_fill(orch, buffers[0], 3));
                    inner.run(below => below.with_scope(() => submit_fill(below, buffers[1], 4)), null, null, null);
                    equal(floats(buffers[1])[0], 4, 'a run inside a run');
                    equal(inner.statistics.tasks, 1, 'its tasks');
                    refused(() => inner.run(() => {
                        throw new RangeError('my own words');
                    }, null, null, null), RangeError, 'my own words');
                    refused(() => inner.run(() => false, null, null, null), Pto.Error, 'did not say why');
                    refused(() => inner.run(() => outer.run(() => true, null, null, null), null, null, null), Pto.Error, 'its own worker');
                });
                refused(() => outer.run(() => true, null, null, null), Pto.Error, 'its own worker');
                refused(() => orch.with_scope(() => orch.with_scope(() => false)), Pto.Error, 'the function of a scope failed');
                refused(() => orch.with_scope(3), TypeError, '3 is not a function');
                refused(() => orch.end_scope(), Pto.Error, 'no scope is open');
                submit_fill(orch, buffers[0], 5);
                words.push('b');
            }, null, null, null);
            equal(words.join(), 'a,b', 'both were reached');
            equal(floats(buffers[0])[elements - 1], 5, 'the last');
            if (!outer.isolate)
                equal([0, 1, 2, 3].map(ring => outer.statistics.get_last_task_alive(ring)).join(), '1,0,2,1', 'rings');
            const text = [];
            const graph = outer.capture(orch => {
                refused(() => inner.capture(() => true, null, null, null), Pto.Error, 'inside the function of another one');
                inner.run(() => text.push('a run inside a capture') > 0, null, null, null);
                orch.submit_order(Pto.TaskArgs.new());
            }, null, null, null);
            equal(graph.n_tasks, 1, 'a graph around it');
            equal(text.length, 1, 'it ran');
            equal(inner.capture(() => true, null, null, null).n_tasks, 0, 'one after the other');
            refused(() => outer.run(orch => {
                const nobody = Pto.TaskArgs.new();
                nobody.add_after(99);
                refused(() => {
                    for (;;) // a chip in another process says so later
                        orch.submit_order(nobody);
                }, Pto.Error, 'the run has failed: task 0');
            }, null, null, null), Pto.Error, 'it comes after task 99 ');
            for (const worker of [outer, inner])
                worker.close();
        }
    },

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
        for (const wrong of [below[1], 'x', {}, 2 ** 32 + 1, 0.5])
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

    // Where a task was submitted that fails.
    place() {
        const library = GLib.getenv('PTO_TEST_SUB_FUNCTIONS');
        const host = new Pto.Worker({level: 3, n_sub_workers: 1});
        const handle = host.register(Pto.ImportedFunction.new_for_symbol(Pto.CallableKind.SUB, `${library}:throw_group`), null);
        const line = Number(new Error().stack.match(/:(\d+):\d+\n/)[1]);
        const submits = [
            orch => orch.submit_sub(handle, null, -1),
            orch => orch.submit_sub_group(handle, [new Pto.TaskArgs()], [-1]),
        ];
        submits.forEach((submit, i) => refused(() => host.run(submit, null, null, null), GLib.Error,
            `, submitted at test_javascript.js:${line + 2 + i}, on L3/0/sub0 failed: `));
        host.close();
    },

    // Where tasks are submitted that are recorded, of a function, a graph that it becomes, and one that is built by hand.
    places() {
        const places = trace => [...trace.list_tasks()].map(task =>
            JSON.parse(trace.explain_task_json(task.id)).submitted_at).join();
        for (const isolate of [false, true]) {
            const worker = new Pto.Worker({platform: 'a2a3sim', isolate});
            worker.set_parameter('trace', true);
            const buffer = worker.alloc_buffer(elements * 4);
            const line = Number(new Error().stack.match(/:(\d+):\d+\n/)[1]);
            const submit = orch => {
                orch.with_scope(() => {
                    orch.submit_order(null);
                });
                orch.fill(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), 5);
                submit_fill(orch, buffer, 7);
            };
            const at = by => `test_javascript.js:${line + by}`;
            worker.run(submit, null, null, null);
            const [, , submits] = places(worker.trace).split(',');
            equal(submits.startsWith('test_javascript.js:'), true, 'submit');
            equal(places(worker.trace), [at(3), at(5), submits].join(), 'a run');
            equal(worker.trace.describe_json(Pto.TraceTopic.SCOPES).includes(`"${at(2)}"`), true, 'scope');
            const args = new Pto.TaskArgs();
            args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.INOUT);
            worker.run_graph(worker.capture(submit, args, null, null), args, null, null);
            equal(places(worker.trace), [at(3), at(5), submits].join(), 'a captured graph');
            const graph = new Pto.Graph();
            const filled = new Pto.TaskArgs();
            filled.add_tensor(graph.add_argument(Pto.Dtype.FLOAT32, [elements]), Pto.Direction.OUTPUT_EXISTING);
            filled.add_scalar_float(3);
            graph.add_task(fill, filled);
            worker.run_graph(graph, args, null, null);
            equal(places(worker.trace), at(22), 'a graph that is built by hand');
            worker.close();
        }
    },

    // What is optional behind the last argument is left out, and run() takes whatever can be run.
    async optional() {
        const worker = new Pto.Worker({platform: 'a2a3sim'});
        worker.set_parameter('trace', true);
        worker.start();
        const buffer = worker.alloc_buffer(elements * 4), tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        const submit = orch => submit_fill(orch, buffer, 3), args = new Pto.TaskArgs();
        args.add_tensor(tensor, Pto.Direction.INOUT);
        const graph = worker.capture(submit, args);
        const value = await_ => (floats(buffer)[0] = 0, await_());
        worker.run(orch => orch.submit_order());
        for (const run of [() => worker.run(submit), () => worker.run(graph, args), () => worker.run_graph(graph, args)]) {
            value(run);
            equal(floats(buffer)[0], 3, 'it ran');
        }
        for (const run of [() => worker.run_async(submit), () => worker.run_async(graph, args), () => worker.run_graph_async(graph, args)]) {
            await value(run);
            equal(floats(buffer)[0], 3, 'it ran');
        }
        const handle = worker.register(fill), directory = GLib.dir_make_tmp('pto-XXXXXX');
        GLib.file_set_contents(`${directory}/graph.c`, `#include "pto_orchestration_api.h"
PTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *args, int arg_count) { return (PTO2OrchestrationConfig){ 0 }; }
int aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *args, int arg_count) { return 0; }\n`);
        const orchestration = worker.register(Pto.ChipOrchestration.new(`${directory}/graph.c`, null));
        worker.run(orchestration);
        await worker.run_async(orchestration);
        equal(worker.capture(orchestration).n_tasks, 0, 'a registered one');
        refused(() => worker.run(handle), Pto.Error, 'is a kernel');
        refused(() => worker.run_graph(), TypeError, 'run_graph');
        worker.close();
    },

    // A task is a number, a BigInt or a text; a topic is its name, too.
    questions() {
        const worker = new Pto.Worker({platform: 'a2a3sim'});
        worker.set_parameter('trace', true);
        worker.run(orch => orch.with_scope(() => {
            for (let i = 0; i < 3; i++)
                orch.submit_order();
        }));
        const {trace} = worker, [, , last] = trace.list_tasks();
        equal(last.label, '1:2', 'label');
        const why = trace.explain('1:2');
        for (const task of [last, `${2 ** 32 + 2}`, 2 ** 32 + 2, BigInt(2 ** 32 + 2)]) {
            equal(trace.explain(task), why, `${task}`);
            equal(trace.explain_task(task), why, `${task}`);
            equal(JSON.parse(trace.explain_task_json(task)).task, `${2 ** 32 + 2}`, `${task}`);
        }
        for (const [task, type, part] of [[2, GLib.Error, 'there is 1:2'], ['4:1', GLib.Error, '"4:1" is no task'], [2.5, TypeError, '2.5 is no task'],
            ['x', GLib.Error, '"x" is no task'], [-1, GLib.Error, '"-1" is no task'], [2 ** 60, TypeError, 'is no task'], [null, TypeError, 'null is no task'],
            ['1/2', GLib.Error, 'task 1: the trace has nothing that a worker recorded inside of it']])
            refused(() => trace.explain_task(task), type, part);
        equal(trace.describe('critical-path'), trace.describe(Pto.TraceTopic.CRITICAL_PATH), 'by its name');
        equal(trace.describe_json('scopes'), trace.describe_json(Pto.TraceTopic.SCOPES), 'by its name');
        refused(() => trace.describe('critical'), TypeError, '"critical" is none of Pto.TraceTopic');
        const costs = Pto.Costs.new();
        costs.add_time('move', 'chip', 1000, 1500.5);
        equal(costs.dup_cost('move', 'chip'), 'constant:1500.5', 'a clock by its name');
        equal(costs.dup_cost('move', 'cpu'), null, 'another clock');
        refused(() => costs.dup_cost('move', 'tpu'), TypeError, '"tpu" is none of Pto.Clock');
        refused(() => costs.add_time('move', 7, 1000, 1), TypeError, '7 is none of Pto.Clock');
        refused(() => costs.add_trace(trace), Pto.Error, 'no kernel ran in this trace');
        worker.close();
    },

    // What a worker does is asked by name, and of an object; only a process that listens can be asked by another one.
    asking() {
        const worker = chip('par'), buffer = Pto.Buffer.new(elements * 4);
        worker.run((orch) => submit_fill(orch, buffer, 2), null, null, null);
        const {path, level, run, totals, cores} = worker.doing;
        equal(JSON.stringify([path, level, run, totals.runs, totals.submitted, totals.completed, cores.length]), '["L2/0",2,null,1,1,1,72]', 'doing');
        equal(worker.describe_state().includes('L2/0: a2a3sim on par, no run is under way\n'), true, 'text');
        equal(worker.dup_metrics().includes('\npto_tasks_submitted_total{worker="L2/0",number="'), true, 'metrics');
        for (const format of ['json', Pto.AnswerFormat.JSON])
            equal(JSON.parse(Pto.Worker.ask_process(0, format)).workers.some(each => each.path === path), true, 'this process');
        equal(Pto.answer_is_on(), false, 'off');
        refused(() => Pto.Worker.ask_process(0, 'xml'), TypeError, '"xml" is none of Pto.AnswerFormat');
        refused(() => Pto.Worker.ask_process(-1), TypeError, '-1 is the number of no process');
        refused(() => Pto.Worker.ask_process(undefined), TypeError, 'undefined is the number of no process');
        refused(() => Pto.Worker.ask_process(2 ** 60), TypeError, '1152921504606847000 is the number of no process');
        refused(() => Pto.Worker.ask_process(2 ** 40), GLib.Error, '1099511627776 is the number of no process');
        refused(() => Pto.Worker.ask_process(4194309), GLib.Error, 'there is no process 4194309');
        worker.close();
        equal(worker.doing, null, 'closed');
    },

    // Each is of its own type, says what it is, and refuses names that are misspelt.
    callables() {
        const sub = Pto.SubFunction.new('f', () => true);
        equal(fill instanceof Pto.Kernel && fill instanceof Pto.Callable && !(sub instanceof Pto.Kernel), true, 'types');
        equal(`${fill}`, `[Pto.Kernel: the kernel "fill" of ${here}/fill.c]`, 'kernel');
        equal(`${sub}`, '[Pto.SubFunction: the SUB function "f" of this process]', 'function');
        equal(fill.kind, Pto.CallableKind.KERNEL, 'kind');
        equal(fill.core_type, Pto.CoreType.AIV, 'core type');
        refused(() => {
            fill.nmae = 'x';
        }, TypeError, 'nmae does not exist');
        refused(() => sub.set_cost('constant:1'), TypeError, 'set_cost');
        const orchestration = Pto.ChipOrchestration.new(GLib.build_filenamev([here, 'fill_orch.c']), null);
        const others = [sub, Pto.OrchestrationFunction.new('g', () => true), Pto.ImportedFunction.new(Pto.CallableKind.SUB, 'a:b')];
        for (const name of ['build', 'build_async', 'set_include_dirs', 'get_include_dirs', 'set_compiler_flags', 'get_compiler_flags']) {
            equal(name in fill && name in orchestration, true, `what is compiled has ${name}`);
            equal(others.some(other => name in other), false, `functions have no ${name}`);
        }
        equal(fill instanceof Pto.DeviceCode && !(sub instanceof Pto.DeviceCode), true, 'what is compiled');
        equal(`${orchestration.symbol} ${fill.symbol} ${others[2].symbol}`, 'aicpu_orchestration_entry kernel_entry null', 'symbols');
        refused(() => {
            sub.include_dirs = here;
        }, TypeError, 'include_dirs does not exist');
        refused(() => new Pto.Callable(), Error, 'abstract');
        const worker = chip('par');
        refused(() => worker.register(new Pto.Kernel(), null), Pto.Error, 'was not made by a constructor');
        worker.close();
    },

    // Before a worker has it, beside everything else.
    async build() {
        equal(await fill.build_async(null), true, 'built');
        const [file] = GLib.file_open_tmp('pto-XXXXXX.c').slice(1);
        GLib.file_set_contents(file, 'int x = y;\n');
        const wrong = Pto.Kernel.new(Pto.CoreType.AIV, file, null);
        await rejected(wrong.build_async(null), Pto.Error, `${file}:1:9: error: `);
        GLib.file_set_contents(file, 'int x;\n');
        equal((await Pto.compile_shared_object_async(file, null)).endsWith('.so'), true, 'object');
        GLib.unlink(file);
    },

    // pto.ini is read in C: what Python has, JavaScript has.
    directory() {
        const dir = GLib.Dir.make_tmp('pto-test-XXXXXX');
        const file = GLib.build_filenamev([dir, 'pto.ini']);
        const source = GLib.build_filenamev([here, 'fill.c']);
        const orchestration = GLib.build_filenamev([here, 'fill_orch.c']);
        const text = `[orchestration]\nsource=${orchestration}\n[kernel 1]\nname=fill\nsource=${source}\ncore=aiv\n`;
        GLib.file_set_contents(file, text);
        const callable = Pto.ChipOrchestration.new_for_directory(dir);
        equal(callable.path, orchestration, 'orchestration');
        equal(callable.get_kernel(1).path, source, 'kernel');
        equal(callable.get_kernel_name(1), 'fill', 'name');
        GLib.file_set_contents(file, `${text}core=gpu\n`);
        refused(() => Pto.ChipOrchestration.new_for_directory(dir), Pto.Error, `${file}: line 7: the key "core" is there twice`);
        GLib.unlink(file);
        refused(() => Pto.ChipOrchestration.new_for_directory(dir), Pto.Error, `${file}: there is no such file`);
        GLib.rmdir(dir);
    },

    async promises() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            const buffer = Pto.Buffer.new(4 * elements);
            equal(await worker.run_async(orch => submit_fill(orch, buffer, 2.5), null, null, null), true, backend);
            equal(floats(buffer)[elements - 1], 2.5, backend);
            await rejected(worker.run_async(() => {
                throw new RangeError('my own words');
            }, null, null, null), Error, 'my own words');
            const cancellable = new Gio.Cancellable();
            const run = worker.run_async(orch => {
                for (let i = 0; i < 1000; i++)
                    submit_fill(orch, buffer, i);
            }, null, null, cancellable);
            cancellable.cancel();
            await rejected(run, Gio.IOErrorEnum, 'cancelled');
            // As it is without a promise.
            equal(await new Promise(resolve => {
                worker.run_async(orch => submit_fill(orch, buffer, 4), null, null, null,
                    (source, result) => resolve(source.run_finish(result)));
            }), true, 'callback');
            equal(floats(buffer)[0], 4, backend);
            worker.close();
        }
    },

    async life() {
        const chips = ['par', 'det', 'threads'].map(backend => {
            const worker = Pto.Worker.new_chip('a2a3sim');
            worker.set_parameter('backend', backend);
            return worker;
        });
        const isolated = new Pto.Worker({isolate: true});
        const host = Pto.Worker.new_host(3, 1, 1, null);
        const above = Pto.Worker.new_host(4, 0, 1, null);
        above.add_worker(Pto.Worker.new_host(3, 0, 1, null));
        for (const worker of [...chips, isolated, host, above]) {
            const cancelled = new Gio.Cancellable();
            cancelled.cancel();
            await rejected(worker.start_async(cancelled), Gio.IOErrorEnum, 'cancelled');
            const results = await Promise.all([worker.start_async(null), worker.start_async(null)]);
            equal(results.join(), 'true,true', 'two starts');
            if (worker.level === 2) {
                const handles = await Promise.all([1, 2].map(() => worker.register_async(fill, null)));
                equal(handles[0].equal(handles[1]), true, 'two registrations');
                const buffer = Pto.Buffer.new(4 * elements);
                equal(await worker.run_async(orch => submit_fill(orch, buffer, 1.5), null, null, null), true, 'run');
                equal(floats(buffer)[0], 1.5, 'result');
            }
            await Promise.all([worker.close_async(), worker.close_async()]);
            equal(worker.state, Pto.WorkerState.CLOSED, 'closed');
            await rejected(worker.start_async(null), Pto.Error, 'closed');
        }
        // What waits for its own worker inside its function is refused at once; what can be done there is done.
        for (const worker of [Pto.Worker.new_chip(null), new Pto.Worker({isolate: true}), Pto.Worker.new_host(3, 0, 1, null)]) {
            const wait = (name, ...args) => { // without a promise: those go on when this has returned
                let answer = null;
                worker[`${name}_async`](...args, (_, result) => (answer = result));
                while (answer === null)
                    GLib.MainContext.default().iteration(true);
                return worker[`${name}_finish`](answer);
            };
            const inside = () => {
                const busy = error => error.matches(Pto.Error, Pto.Error.BUSY);
                for (const [name, what] of [['run', inside], ['run_graph', new Pto.Graph()]]) {
                    try {
                        wait(name, what, null, null, null);
                        throw new Error(`${name} was not refused`);
                    } catch (error) {
                        equal(error.message, 'an orchestration function can not use its own worker for another run', name);
                        equal(busy(error), true, name);
                    }
                }
                refused(() => wait('close'), Pto.Error, 'close() ends the run');
                const what = worker.level === 2 ? fill : Pto.OrchestrationFunction.new('answer', () => true);
                equal(wait('register', what, null) instanceof Pto.CallableHandle, true, 'a registration');
            };
            equal(worker.run(inside, null, null, null), true, 'a run');
            equal(await worker.run_async(inside, null, null, null), true, 'a promised run');
            worker.close();
        }
        // A run starts what was not started.
        const chip = Pto.Worker.new_chip(null);
        const buffer = Pto.Buffer.new(4 * elements);
        equal(`${chip}`, '[Pto.Worker: L2/0: a2a3sim, new]', 'words of a worker');
        equal(chip.run(orch => submit_fill(orch, buffer, 3.5), null, null, null), true, 'run of a new one');
        equal(floats(buffer)[0], 3.5, 'its result');
        const words = [];
        chip.run(orch => {
            words.push(`${orch}`);
            equal(orch.tensor(Pto.Dtype.INT8, [4]).get_n_elements(), 4, 'tensor');
        }, null, null, null);
        equal(words[0], '[Pto.Orchestrator: of a run of L2/0]', 'words of an orchestrator');
        const top = Pto.Worker.new_host(4, 0, 1, null);
        const changes = [];
        top.children.connect('items-changed', (model, at, removed, added) => changes.push([at, removed, added].join()));
        for (let i = 0; i < 2; i++)
            top.add_worker(Pto.Worker.new_host(3, 1, 0, null));
        equal([...top.children].map(child => child.path).join(), 'L4/0/L3/0,L4/0/L3/1', 'all of them');
        equal('append' in top.children || 'remove_all' in top.children, false, 'they are looked at only');
        equal(top.children.get_item(1).children.get_item(0).path, 'L4/0/L3/1/L2/0', 'path of a child');
        top.close();
        equal(top.children.get_n_items(), 0, 'children of a closed worker');
        equal(changes.join(' '), '0,0,1 1,0,1 0,2,0', 'changes');
        await chip.close_async();
    },

    numbers() {
        const args = new Pto.TaskArgs();
        for (const wrong of [2.5, '7', 'text', undefined, null, NaN, {}]) {
            for (const name of ['add_scalar', 'add_scalar_signed'])
                refused(() => args[name](wrong), TypeError, `${name}: ${shown(wrong)} is not an integer`);
        }
        for (const wrong of ['2.5', undefined, null, 3n, {}]) {
            for (const name of ['add_scalar_float', 'add_scalar_double'])
                refused(() => args[name](wrong), TypeError, `${name}: ${shown(wrong)} is not a number`);
        }
        equal(args.n_args, 0, 'nothing was added');
        args.add_scalar(7n);
        args.add_scalar_signed(-2);
        args.add_scalar_float(2.5);
        args.add_scalar_double(NaN);
        equal([0, 1, 2, 3].map(i => args.get_scalar_value(i)).join(), '7,-2,2.5,NaN', 'numbers');
        refused(() => args.add_scalar(-1), Error, 'out of range');
        refused(() => args.add_scalar(), TypeError, 'At least 1 argument');
    },

    attributes() {
        const config = new Pto.CallConfig();
        config.block_dim = 4;
        config.output_prefix = 'here';
        equal(config.get_block_dim(), 4, 'set');
        equal(config.block_dim, 4, 'got');
        equal(config.output_prefix, 'here', 'got');
        config.enable_access_check = 1;
        equal(config.enable_access_check, 1, 'got');
        equal(config.to_string(), 'block_dim=4 enable_access_check=1 output_prefix=here', 'all of it');
        const buffer = Pto.Buffer.new(64);
        const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [2, 8]);
        equal(tensor.shape.join(), '2,8', 'shape');
        const worker = chip('det');
        worker.run(orch => {
            equal(orch.worker, worker, 'an object');
            refused(() => (orch.nobody = 1), TypeError, 'Pto.Orchestrator.nobody does not exist');
            submit_fill(orch, buffer, 1);
        }, null, config, null);
        equal(worker.statistics.tasks, 1, 'statistics');
        for (const object of [config, Pto.CallConfig.new(), config.copy(), buffer, tensor, new Pto.TaskArgs(),
            worker.statistics, Pto.Platform.lookup('a2a3sim'), worker, fill, worker.register(fill, null)])
            refused(() => (object.enable_pmuu = 1), TypeError, '.enable_pmuu does not exist');
        refused(() => (tensor.shape = [16]), TypeError, 'shape');
        refused(() => new Pto.Worker({isolat: true}), Error, 'isolat');
        worker.close();
        equal(worker.state, Pto.WorkerState.CLOSED, 'a property');
    },

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
            floats(buffers[0]).fill(7);
            floats(buffers[1]).fill(100);
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

    // By operators of the chip, and by a kernel: on all back ends, here and in another process.
    reductions() {
        const dir = GLib.Dir.make_tmp(null);
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
        const dir = GLib.Dir.make_tmp(null);
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
        for (const name of ['block', 'push', 'pop', 'meet0', 'meet1', 'scratch'])
            GLib.unlink(GLib.build_filenamev([dir, `${name}.c`]));
        GLib.rmdir(dir);
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

print(`1..${Object.keys(tests).length}`);
let count = 0, failed = false;
for (const [name, test] of Object.entries(tests)) {
    try {
        await test();
        print(`ok ${++count} ${name}`);
    } catch (error) {
        failed = true;
        print(`not ok ${++count} ${name}`);
        print(`# ${error}\n# ${error.stack.replaceAll('\n', '\n# ')}`);
    }
}
System.exit(failed ? 1 : 0);
