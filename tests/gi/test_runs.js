// test_runs.js: do runs from JavaScript call what they are given, and tell how it went?
// SPDX-License-Identifier: LGPL-2.1-or-later
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import Pto from 'gi://Pto?version=1';

import {chip, elements, fill, floats, hold, set_floats, submit_fill} from './chips.js';
import {equal, main, refused, rejected} from './tap.js';

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
    exceptions() {
        const one = Pto.Exception.new('KeyError', 'two', 'at home', []);
        const group = Pto.Exception.new('Group', '', null, [one]);
        equal(one.message, 'two', 'message');
        equal(String(one), '[Pto.Exception: KeyError: two]', 'text');
        equal(String(group), '[Pto.Exception: Group]', 'text of a group');
        equal(group.get_member(0).type_name, 'KeyError', 'member');
        equal(group.get_member(1), null, 'no member');
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

    // While a call of the function waits: nothing else lets the kernel return.
    async loop_goes_on() {
        const worker = chip('par');
        const buffer = new Pto.Buffer(4 * elements);
        const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        const words = [];
        let waiting = null;
        let element = null;
        const source = GLib.timeout_add(GLib.PRIORITY_DEFAULT, 1, () => {
            if (waiting === null)
                return GLib.SOURCE_CONTINUE;
            refused(() => submit_fill(waiting, buffer, 1), Pto.Error, 'submit from the orchestration function');
            words.push('turn');
            set_floats(buffer, [5]);
            return GLib.SOURCE_REMOVE;
        });
        await worker.run_async(orch => {
            const args = new Pto.TaskArgs();
            args.add_tensor(tensor, Pto.Direction.INOUT);
            orch.submit(hold, args);
            waiting = orch;
            element = orch.get_element(tensor, [0]);
            words.push('end');
        }, null, null, null);
        if (words[0] !== 'turn')
            GLib.source_remove(source);
        equal(words.join(), 'turn,end', 'order');
        equal(element, 5, 'element');
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

    // Where a task was submitted whose kernel crashes, does not return, or writes past its output: on a chip, and below level 3.
    place_of_a_fault() {
        const directory = GLib.Dir.make_tmp('pto-test-XXXXXX');
        const faults = {
            crash: '*(volatile int *) 8 = 1;',
            hang: 'for (volatile int i = 1; i;);',
            past: '((volatile char *) (uintptr_t) t->buffer.addr)[t->buffer.size] = 1;',
            death: 'kill (getpid (), SIGKILL); pause ();', // of the chip's process
        };
        const source = `${directory}/orchestration.c`;
        GLib.file_set_contents(source, '#include "pto_orchestration_api.h"\nPTO2OrchestrationConfig aicpu_orchestration_config (uint64_t *a, int n)\n' +
            '{ return (PTO2OrchestrationConfig){ 0 }; }\nint aicpu_orchestration_entry (PTO2Runtime *rt, uint64_t *a, int n)\n{\n' +
            '  uint64_t shape[1] = { 16 };\n  pto2_rt_init_tensor_pool (rt);\n  PTO2_SCOPE (rt)\n  {\n' +
            '    PTOParam params[] = { make_output_param (make_tensor (shape, 1, PTO_DTYPE_FLOAT32)) };\n' +
            '    pto2_rt_submit_task (rt, 0, PTO2_WORKER_VECTOR, params, 1);\n  }\n  return 0;\n}\n');
        const line = Number(new Error().stack.match(/:(\d+):\d+\n/)[1]);
        const onChip = kernel => orch => orch.submit(kernel, orch.tensor(Pto.Dtype.FLOAT32, [16]).write());
        const onHost = part => orch => orch.submit_next_level(part, []);
        GLib.setenv('PTO_TIMEOUT', '500', true);
        for (const [name, body] of Object.entries(faults)) {
            const path = `${directory}/${name}.c`;
            GLib.file_set_contents(path, '#include "tensor.h"\n#include <signal.h>\n#include <unistd.h>\nvoid kernel_entry (int64_t *args)\n' +
                `{ const TensorData *t = (const TensorData *) (uintptr_t) args[0]; (void) t; ${body} }\n`);
            const kernel = Pto.Kernel.new(Pto.CoreType.AIV, path, null);
            for (const isolate of name === 'death' ? [true] : [false, true]) {
                const chip = new Pto.Worker({isolate});
                refused(() => chip.run(onChip(kernel)), Pto.Error, `, submitted at test_runs.js:${line + 1}: the kernel`);
                chip.close();
            }
            const part = Pto.ChipOrchestration.new(source, null);
            part.add_kernel(0, name, Pto.Kernel.new(Pto.CoreType.AIV, path, null));
            const host = new Pto.Worker({level: 3, devices: 1});
            host.set_parameter('timeout', 60000); // that of the chip is over first
            const handle = host.register(part);
            let said = '';
            try {
                host.run(onHost(handle));
            } catch (error) {
                said = error.message;
            }
            const expected = name === 'death' ? [` while running "orchestration", submitted at test_runs.js:${line + 2};`]
                : [`, submitted at test_runs.js:${line + 2}, on L3/0/L2/0 failed: `, `(${name}) on core AIV`, ', submitted at orchestration.c:11: the kernel '];
            for (const words of expected)
                equal(said.includes(words), true, said);
            host.close();
            GLib.unlink(path);
        }
        GLib.unsetenv('PTO_TIMEOUT');
        GLib.unlink(source);
        GLib.rmdir(directory);
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
            `, submitted at test_runs.js:${line + 2 + i}, on L3/0/sub0 failed: `));
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
            const at = by => `test_runs.js:${line + by}`;
            worker.run(submit, null, null, null);
            const [, , submits] = places(worker.trace).split(',');
            equal(submits.startsWith('chips.js:'), true, 'submit');
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
};

await main(tests);
