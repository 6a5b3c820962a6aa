// test_refusals.js: does JavaScript refuse what GJS would make something else of?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import System from 'system';
import Pto from 'gi://Pto?version=1';

import {chip, elements, fill, floats, set_floats, submit_fill} from './chips.js';
import {equal, main, refused, shown, temporary} from './tap.js';

const [here] = System.programArgs;

const tests = {
    'what is suggested is taken': () => {
        let n = 0;
        for (const level of [2, 3]) {
            const plain = new Pto.Worker({level});
            const names = Pto.Worker.list_parameters().concat(GObject.Object.list_properties.call(Pto.Worker).map(each => each.get_name()));
            for (const name of names) {
                const isParameter = Pto.Worker.list_parameters().includes(name);
                const value = isParameter ? plain.dup_parameter(name) : 1;
                for (const wrong of [`${name.slice(0, 3)}${name.slice(4)}`, name.replaceAll('-', ''), `${name}x`].filter(each => !names.includes(each))) {
                    let said = '';
                    try {
                        new Pto.Worker({level, [wrong]: value});
                    } catch (error) {
                        said = error.message;
                    }
                    const [, property] = said.match(/; did you mean "(.*)"\?$/) ?? [];
                    const [, parameter, text] = said.match(/worker\.set_parameter\('(.*)', '(.*)'\)\?$/) ?? [];
                    if (property !== undefined) {
                        try {
                            new Pto.Worker({level, [property]: value});
                        } catch (error) { // a value of the wrong type is one
                            equal(/no property|is a parameter|not writable/.test(error.message), false, error.message);
                        }
                    } else if (parameter !== undefined) {
                        new Pto.Worker({level}).set_parameter(parameter, text);
                    }
                    n += Number(property !== undefined || parameter !== undefined);
                }
            }
        }
        equal(n > 100, true, `${n} suggestions`);
    },

    tensors() {
        const columns = Pto.Tensor.new_external(4096, Pto.Dtype.FLOAT64, [6, 8]).as_strided([6, 2], [8, 3], 1);
        equal(columns.get_strides().join(), '8,3', 'strides');
        equal(columns.get_address(), 4104, 'the address of the first element');
    },

    platforms() {
        const chip_dir = temporary();
        const chip_file = GLib.build_filenamev([chip_dir, 'chip.ini']);
        GLib.file_set_contents(chip_file, '[platform]\nclusters=5\n');
        equal(Pto.Platform.lookup(chip_file).get_n_clusters(), 5, 'clusters of a file');
        equal(Pto.Worker.new_chip(chip_file).get_platform(), chip_file, 'the platform is the file');
    },

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
        for (const [name, value, said] of [['task-window', [16], '[16]: one value is wanted, or of rings a list of 4 sizes, one for each'],
            ['backend', ['det'], '["det"]: one value'], ['clusters', null, 'null is no number, switch or text'], ['clusters', undefined, 'undefined is no'],
            ['heap', {size: 16}, 'is no number, switch or text']])
            refused(() => parameters.set_parameter(name, value), TypeError, `the parameter ${name}: ${name === 'heap' ? '' : said}`);
        refused(() => parameters.set_parameter('heap', [4096, 4096]), Pto.Error, 'one for all rings wanted, or 4, one for each');
        equal(parameters.dup_parameter('task-window'), '16,32,64,128', 'as before');
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
            set_floats(a, new Array(elements).fill(0));
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

    // What is optional behind the last argument is left out, and run() takes whatever can be run.
    async optional() {
        const worker = new Pto.Worker({platform: 'a2a3sim'});
        worker.set_parameter('trace', true);
        worker.start();
        const buffer = worker.alloc_buffer(elements * 4), tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        const submit = orch => submit_fill(orch, buffer, 3), args = new Pto.TaskArgs();
        args.add_tensor(tensor, Pto.Direction.INOUT);
        const graph = worker.capture(submit, args);
        const value = await_ => (set_floats(buffer, [0]), await_());
        worker.run(orch => orch.submit_order());
        for (const run of [() => worker.run(submit), () => worker.run(graph, args), () => worker.run_graph(graph, args)]) {
            value(run);
            equal(floats(buffer)[0], 3, 'it ran');
        }
        for (const run of [() => worker.run_async(submit), () => worker.run_async(graph, args), () => worker.run_graph_async(graph, args)]) {
            await value(run);
            equal(floats(buffer)[0], 3, 'it ran');
        }
        const handle = worker.register(fill), directory = temporary();
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
        refused(() => new Pto.Worker({platfrom: 'a2a3sim'}), TypeError, 'Pto.Worker has no property platfrom; did you mean "platform"?');
        refused(() => (config.block_dmi = 1), TypeError, 'Pto.CallConfig.block_dmi does not exist; did you mean "block_dim"?');
        equal(new Pto.CallConfig({block_dim: 3, output_prefix: 'there'}).to_string(), 'block_dim=3 output_prefix=there', 'fields');
        equal(new Pto.CallConfig({}) instanceof Pto.CallConfig && config.copy() instanceof Pto.CallConfig, true, 'one class');
        refused(() => new Pto.CallConfig({block_dmi: 1}), TypeError, 'Pto.CallConfig.block_dmi does not exist; did you mean "block_dim"?');
        refused(() => new Pto.CallConfig({colour: 1}), TypeError, 'Pto.CallConfig.colour does not exist');
        refused(() => new Pto.CallConfig({block_dim: 'x'}), TypeError, '"x" is not an integer');
        refused(() => new Pto.CallConfig(4), TypeError, 'Pto.CallConfig: 4 is no object of properties, as {block_dim: 4} is');
        refused(() => worker.set_parameter('task-windw', 4), Pto.Error, '; did you mean "task-window"?');
        refused(() => Pto.Callable.kernel('add.c', {arg: 3}), TypeError, 'there is no option arg: there are core, args, include_dirs, flags, cost; did you mean "args"?');
        refused(() => Pto.Callable.kernel('add.c', {arg: 3, args: 2}), TypeError, 'there is no option arg: there are core, args, include_dirs, flags, cost');
        refused(() => new Pto.Worker({level: 3, backend: 'det'}), TypeError, 'Pto.Worker: backend is a parameter: parameter backend has no effect on a worker of level 3');
        refused(() => new Pto.Worker({back_end: 'det'}), TypeError,
            "Pto.Worker has no property back_end; did you mean the parameter: after this, worker.set_parameter('backend', 'det')?");
        worker.close();
        equal(worker.state, Pto.WorkerState.CLOSED, 'a property');
    },
};

await main(tests);
