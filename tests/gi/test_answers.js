// test_answers.js: does JavaScript get what is asked of traces, workers and callables?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

import {chip, elements, fill, submit_fill} from './chips.js';
import {equal, main, refused, rejected} from './tap.js';

const [here] = System.programArgs;

const tests = {
    flags() {
        const flagged = Pto.Kernel.new(Pto.CoreType.AIV, fill.path, null);
        flagged.set_include_dirs(['/', '/tmp']);
        flagged.set_compiler_flags(['-O1', '-DVALUE="a b"']);
        equal([...flagged.get_include_dirs(), ...flagged.get_compiler_flags()].join('|'), '/|/tmp|-O1|-DVALUE="a b"', 'as they were set');
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
};

await main(tests);
