// test_values.js: do memory and numbers work from JavaScript, where there is no override?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import System from 'system';
import Pto from 'gi://Pto?version=1';

const [here] = System.programArgs;
const {OUTPUT_EXISTING} = Pto.Direction;
const fill = Pto.Kernel.new(Pto.CoreType.AIV, GLib.build_filenamev([here, 'fill.c']), null);
const elements = 16;
let count = 0;

function equal(found, expected, what) {
    if (!Object.is(found, expected))
        throw new Error(`${what}: ${found} is not ${expected}`);
}

function refused(call, part, code = Pto.Error.INVALID_ARGS) {
    try {
        call();
    } catch (error) {
        if (!(error instanceof Pto.Error) || !error.matches(Pto.Error, code) ||
            !error.message.includes(part))
            throw error;
        return;
    }
    throw new Error(`not refused: ${part}`);
}

function chip(backend) {
    const worker = Pto.Worker.new_chip('a2a3sim');
    worker.set_parameter('backend', backend);
    worker.start(null);
    return worker;
}

// What a buffer holds now: GJS may give a copy of it.
const floats = buffer => new Float32Array(buffer.ref_bytes().toArray().buffer);
const set_floats = (buffer, values) => buffer.write(0, new Uint8Array(Float32Array.from(values).buffer));

function fill_args(tensor, value) {
    const args = Pto.TaskArgs.new();
    args.add_tensor(tensor, OUTPUT_EXISTING);
    args.add_scalar_float(value);
    return args;
}

// An object of the program, with a buffer that nobody else has.
const Owner = GObject.registerClass(class Owner extends GObject.Object {});

// type, message, trace and members, as text
function structure(exception) {
    const members = [];
    for (let i = 0; i < exception.get_n_members(); i++)
        members.push(structure(exception.get_member(i)));
    return JSON.stringify([exception.get_type_name(), exception.get_message(), exception.get_trace(), ...members]);
}

const tests = {
    // What was thrown in a child of another language, and what is thrown here, keeps its structure.
    exceptions() {
        const member = structure(Pto.Exception.new('KeyError', 'two', 'at home', []));
        equal(member, '["KeyError","two","at home"]', 'exception');
        const expected = JSON.stringify(['ExceptionGroup', 'both', 'line 1\nline 2', '["ValueError","one",null]', member]);
        const library = GLib.getenv('PTO_TEST_SUB_FUNCTIONS');
        const host = new Pto.Worker({level: 3, n_sub_workers: 1});
        const handle = host.register(Pto.ImportedFunction.new_for_symbol(Pto.CallableKind.SUB, `${library}:throw_group`), null);
        const members = [Pto.Exception.new('ValueError', 'one', null, []), Pto.Exception.new('KeyError', 'two', 'at home', [])];
        const here_thrown = () => {
            Pto.Exception.new('ExceptionGroup', 'both', 'line 1\nline 2', members).throw();
            throw new GLib.Error(Pto.Exception.quark(), 0, 'ExceptionGroup: both');
        };
        const in_process = chip('par');
        const isolated = new Pto.Worker({isolate: true});
        for (const [name, worker, graph] of [
            ['SUB function', host, orch => orch.submit_sub(handle, null, -1)], ['function', host, here_thrown],
            ['chip', in_process, here_thrown], ['isolated chip', isolated, here_thrown]]) {
            Pto.Exception.new('Another', 'before', null, []).throw();
            try {
                worker.run(graph, null, null, null);
            } catch (error) {
                if (!(error instanceof GLib.Error) || !error.matches(Pto.Exception.quark(), 0))
                    throw error;
                equal(error.message.includes('ExceptionGroup: both'), true, `${name}: ${error.message}`);
                equal(structure(Pto.Exception.get_last()), expected, name);
                continue;
            }
            throw new Error(`${name}: nothing was thrown`);
        }
        for (const worker of [host, in_process, isolated])
            worker.close();
    },

    // Times become a cost, each clock's for itself.
    costs() {
        const costs = Pto.Costs.new();
        costs.add_time('move', Pto.Clock.CHIP, 1000, 1500.5);
        costs.add_time('move', Pto.Clock.CHIP, 3000, 2500.5);
        equal(costs.dup_cost('move', Pto.Clock.CHIP), 'linear:1000.5:0.5', 'cost');
        equal(costs.dup_cost('move', Pto.Clock.CPU), null, 'another clock');
        equal(costs.list_kernels().join(), 'move', 'kernels');
        equal(JSON.parse(costs.describe_json()).kernels[0].model, 'linear', 'model');
    },

    // The orchestration takes extents from the tensors that it is given: more than one tile of it.
    shapes() {
        const n = 2500;
        const add = Pto.ChipOrchestration.new_for_directory(GLib.build_filenamev([here, '..', '..', 'examples', 'worked-example', 'add']));
        for (const [backend, isolate] of [['par', false], ['det', false], ['threads', false], ['par', true]]) {
            const worker = new Pto.Worker({isolate});
            worker.set_parameter('backend', backend);
            const handle = worker.register(add, null);
            worker.start(null);
            const buffers = [0, 1, 2].map(() => Pto.Buffer.new(4 * n));
            [1, 2].forEach((factor, i) => set_floats(buffers[i], Array.from({length: n}, (_, at) => factor * (at + 1))));
            const args = Pto.TaskArgs.new();
            for (const buffer of buffers)
                args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [n]), OUTPUT_EXISTING);
            worker.run_callable(handle, args, null, null);
            equal(floats(buffers[2]).every((value, i) => value === 3 * (i + 1)), true, `sums on ${backend}`);
            equal(worker.dup_statistics().get_tasks(), 3, 'tasks');
            worker.close();
        }
    },

    // Captured and built by hand, launched with other memory than it was made for.
    graphs() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            const buffers = [0, 1].map(() => Pto.Buffer.new(4 * elements));
            const tensors = buffers.map(buffer => Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]));
            const given = tensor => {
                const args = Pto.TaskArgs.new();
                args.add_tensor(tensor, OUTPUT_EXISTING);
                return args;
            };
            const captured = worker.capture(orch => {
                orch.submit(fill, fill_args(tensors[0], 3));
                return true;
            }, given(tensors[0]), null, null);
            equal(captured.to_string(), '1 task of 1 kernel, 1 argument', 'graph');
            equal(floats(buffers[0])[0], 0, 'nothing ran');
            worker.run_graph(captured, given(tensors[1]), null, null);
            equal(floats(buffers[1])[elements - 1], 3, 'captured');
            refused(() => worker.run_graph(captured, null, null, null), 'takes 1 argument, but 0');

            const graph = new Pto.Graph();
            const argument = graph.add_argument(Pto.Dtype.FLOAT32, [elements]);
            const last = graph.add_task(fill, fill_args(argument, 5));
            const first = graph.add_task(fill, fill_args(argument, 4));
            graph.add_successor(first, last);
            const update = new Pto.TaskArgs();
            update.add_tensor(argument, Pto.Direction.COMMUTATIVE);
            update.add_scalar(6);
            const updates = [0, 1].map(() => graph.add_task(fill, update));
            for (const task of updates)
                graph.add_successor(task, first);
            refused(() => graph.add_task(fill, fill_args(tensors[0], 1)), 'is no tensor of this graph');
            refused(() => worker.run(orch => orch.submit(fill, fill_args(argument, 1)), null, null, null), 'stands for an argument of a graph');
            refused(() => worker.capture(orch => orch.alloc(Pto.Dtype.FLOAT32, [elements]) !== null, null, null, null),
                'alloc() gives memory at once');
            worker.run_graph(graph, given(tensors[0]), null, null);
            equal(floats(buffers[0])[1], 5, 'by hand');
            equal(graph.get_n_edges(), 3, 'edges');
            const host = new Pto.Worker({level: 3});
            refused(() => host.run_graph(graph, given(tensors[0]), null, null),
                'the tasks of this graph are kernels ("fill"), which run on a chip, and L3/0 has no cores', Pto.Error.NOT_SUPPORTED);
            equal(host.capture(() => true, null, null, null).get_n_tasks(), 0, 'nothing was submitted');
            host.close();
            worker.close();
        }
    },

    // The same of what is given to workers below: c = a + b, d = c + a.
    level_graphs() {
        const n = 100;
        const {INPUT, OUTPUT} = Pto.Direction;
        const add = Pto.ChipOrchestration.new_for_directory(GLib.build_filenamev([here, '..', '..', 'examples', 'worked-example', 'add']));
        const list = (...all) => {
            const args = Pto.TaskArgs.new();
            for (const [tensor, direction] of all)
                args.add_tensor(tensor, direction);
            return args;
        };
        const make = () => {
            const buffers = [0, 1, 2].map(() => Pto.Buffer.new(4 * n));
            return [buffers, list(...buffers.map((buffer, i) =>
                [Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [n]), i < 2 ? INPUT : OUTPUT_EXISTING]))];
        };
        for (const child_mode of [Pto.ChildMode.PROCESS, Pto.ChildMode.THREAD]) {
            const host = new Pto.Worker({level: 3, child_mode, device_ids: new GLib.Variant('au', [0, 1])});
            const handle = host.register(add, null);
            const [, first] = make();
            const graph = host.capture((orch, args) => {
                const [a, b, d] = [0, 1, 2].map(i => args.get_tensor(i));
                const c = orch.make_tensor(Pto.Dtype.FLOAT32, [n]);
                orch.submit_next_level(handle, list([a, INPUT], [b, INPUT], [c, OUTPUT]), null, -1);
                orch.submit_next_level(handle, list([c, INPUT], [a, INPUT], [d, OUTPUT_EXISTING]), null, 1);
                return true;
            }, first, null, null);
            equal(graph.to_string(), '2 tasks of 1 callable, 3 arguments', 'graph');
            for (let i = 1; i <= 20; i++) {
                const [[a, b, d], args] = make();
                set_floats(a, new Array(n).fill(i));
                set_floats(b, new Array(n).fill(3 * i));
                host.run_graph(graph, args, null, null);
                equal(floats(d).every(value => value === 5 * i), true, `launch ${i}`);
                equal(host.dup_statistics().get_tasks(), 2, 'tasks');
            }
            refused(() => host.run_graph(graph, list(), null, null), 'takes 3 arguments, but 0');
            const below = chip('par');
            refused(() => below.run_graph(graph, first, null, null), 'the tasks of this graph are for workers ("', Pto.Error.NOT_SUPPORTED);
            below.close();
            const kept = Pto.Tensor.new_for_buffer(Pto.Buffer.new(4 * n), 0, Pto.Dtype.FLOAT32, [n]);
            refused(() => host.capture((orch, args) => orch.submit_next_level(handle,
                list([kept, INPUT], [args.get_tensor(0), INPUT], [args.get_tensor(2), OUTPUT_EXISTING]), null, -1), first, null, null),
            'argument 0 lies in memory that is no argument of the run');
            host.unregister(handle);
            refused(() => host.run_graph(graph, first, null, null), 'is not registered on L3/0', Pto.Error.NOT_FOUND);
            host.close();
        }
    },

    // A viewer's way through a trace; what it finds is what the summary says.
    trace() {
        const worker = Pto.Worker.new_chip('a2a3sim');
        for (const [name, value] of [['backend', 'det'], ['clusters', '3'], ['trace', '1']])
            worker.set_parameter(name, value);
        worker.start(null);
        const buffer = Pto.Buffer.new(4 * elements);
        const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]);
        worker.run(orch => [1, 2, 3].every(value => orch.submit(fill, fill_args(tensor, value)) ?? true), null, null, null);
        const trace = worker.ref_trace();
        const list = model => Array.from({length: model.get_n_items()}, (_, i) => model.get_item(i));
        const [tasks, edges, cores] = [trace.list_tasks(), trace.list_edges(), trace.list_cores()].map(list);
        equal(tasks.map(task => task.get_name()).join(), 'fill,fill,fill', 'names');
        equal(edges.map(edge => `${edge.get_producer()}-${edge.get_consumer()}`).join(), '0-1,1-2', 'edges');
        equal(edges[0].get_hazards(), Pto.Hazards.WAW, 'hazards');
        equal(trace.list_tasks().get_item(3), null, 'behind the last');
        equal(tasks[0].list_members().get_n_items(), 1, 'members');
        const page = trace.to_html();
        equal(JSON.parse(page.split('id="data">')[1].split('</script>')[0]).tasks.n, 3, 'tasks of the report');
        equal(trace.compare(trace).split('\n')[2], 'nothing differs', 'a trace and itself');
        equal(JSON.parse(trace.compare_json(trace)).matched, 3, 'tasks of both');
        const points = JSON.parse(trace.predict_json(['clusters=1,3'])).points;
        equal(points.map(point => point.settings.clusters).join(), '1,3', 'points');
        let message = null;
        try {
            trace.predict(['clusters=none']);
        } catch (error) {
            ({message} = error);
        }
        equal(message, 'clusters: "none" is no number from 1 to 1024', 'no setting');
        try {
            trace.simulate(['link-latency=2us']);
        } catch (error) {
            ({message} = error);
        }
        equal(message.includes('it is the trace of a chip'), true, 'a chip has a virtual clock');
        for (const [kind, name] of [[Pto.TraceCoreKind.AIC, '3 AIC'], [Pto.TraceCoreKind.AIV, '6 AIV']]) {
            const busy = cores.filter(core => core.get_kind() === kind).map(core => core.get_busy_ns());
            const share = busy.reduce((sum, ns) => sum + ns) / busy.length / trace.get_elapsed_ns();
            if (!trace.summarize().includes(`${name} busy ${Math.round(100 * share)} %`))
                throw new Error(`${name}: ${share}: ${trace.summarize()}`);
        }
        worker.close();
    },

    limits() {
        equal(Pto.MAX_CHILDREN, 256, 'children');
        equal(Pto.Tensor.new(Pto.Dtype.INT8, [1, 2]).to_string(), 'int8 [1, 2]', 'tensor');
    },

    // Device memory belongs to what JavaScript collects.
    device_memory() {
        const worker = chip('par');
        let address = 0;
        (() => {
            const buffer = worker.alloc_buffer(4 * elements);
            address = buffer.get_address();
            equal(buffer.get_worker(), worker, 'worker');
            buffer.write(4, new GLib.Bytes(new Uint8Array(new Float32Array([2.5]).buffer)));
            const tensor = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [1]);
            worker.run(orch => orch.submit(fill, fill_args(tensor, 8)), null, null, null);
            const read = new Float32Array(buffer.read(0, 8).toArray().buffer);
            equal(read[0], 8, 'by a task');
            equal(read[1], 2.5, 'by the program');
            refused(() => buffer.read(0, 4 * elements + 1), 'reach beyond');
            refused(() => worker.free(address), 'belongs to a buffer');
        })();
        for (let i = 0; i < 100; i++)
            worker.alloc_buffer(1 << 16);
        System.gc();
        refused(() => worker.copy_from(address, 4), 'lies in no device buffer');
        worker.close();
    },

    // What a run gives back is its tasks' until they have run.
    given_back() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            let address = 0;
            worker.start(null);
            const out = worker.alloc_buffer(4 * elements);
            worker.run(orch => {
                address = worker.malloc(4 * elements);
                const tensor = Pto.Tensor.new_external(address, Pto.Dtype.FLOAT32, [elements]);
                orch.submit(fill, fill_args(tensor, 8));
                equal(worker.free(address), true, 'given back');
                refused(() => worker.free(address), 'is not the address of a device buffer');
                orch.submit(fill, fill_args(Pto.Tensor.new_for_buffer(out, 0, Pto.Dtype.FLOAT32, [elements]), 9));
                return true;
            }, null, null, null);
            refused(() => worker.copy_from(address, 4), 'lies in no device buffer');
            equal(new Float32Array(out.read(0, 4).toArray().buffer)[0], 9, 'by a task');
            // A task of a later run that is given it is named.
            refused(() => worker.run(orch => orch.submit(fill, fill_args(Pto.Tensor.new_external(address, Pto.Dtype.FLOAT32, [elements]), 8)), null, null, null),
                'was freed before the task had run');
            worker.close();
        }
    },

    // Tensors that JavaScript forgets at once, while their tasks wait.
    run_keeps() {
        for (const backend of ['par', 'det', 'threads']) {
            const worker = chip(backend);
            const buffer = Pto.Buffer.new(4 * elements);
            worker.run((orch) => {
                for (let i = 0; i < 50; i++) {
                    const owner = new Owner();
                    owner.buffer = Pto.Buffer.new(4 * elements);
                    const tensor = Pto.Tensor.new_for_object(owner.buffer.get_address(), Pto.Dtype.FLOAT32,
                        [elements], owner);
                    orch.submit(fill, fill_args(tensor, i));
                }
                System.gc();
                orch.submit(fill, fill_args(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), 2.5));
                System.gc();
                return true;
            }, null, null, null);
            System.gc();
            equal(floats(buffer)[elements - 1], 2.5, backend);
            worker.close();
        }
    },

    read_only() {
        const bytes = new Uint8Array(4 * elements);
        const worker = chip('par');
        const tensor = Pto.Tensor.new_for_bytes(bytes, 0, Pto.Dtype.FLOAT32, [elements]);
        equal(tensor.is_read_only(), true, 'bytes');
        refused(() => worker.run((orch) => orch.submit(fill, fill_args(tensor, 1)), null, null, null),
            'argument 0 is an existing output, but its memory can only be read');
        equal(bytes[3], 0, 'bytes');
        refused(() => Pto.Tensor.new_for_bytes(bytes, 8, Pto.Dtype.FLOAT32, [elements]), 'does not fit in bytes of 64');
        worker.close();
    },

    numbers() {
        const args = Pto.TaskArgs.new();
        args.add_scalar(7);
        args.add_scalar_signed(-2);
        args.add_scalar_float(0.1);
        args.add_scalar_double(0.1);
        const {UNSIGNED, SIGNED, FLOAT, DOUBLE} = Pto.ScalarKind;
        [[7, UNSIGNED], [-2, SIGNED], [0.1, FLOAT], [0.1, DOUBLE]].forEach(([value, kind], i) => {
            equal(args.get_scalar_value(i), value, `value ${i}`);
            equal(args.get_scalar_double(i), value, `value ${i}`);
            equal(args.get_scalar_kind(i), kind, `kind ${i}`);
        });
    },

    // A function of this program, in a thread's place: the run's own.
    numbers_at_a_function() {
        const host = Pto.Worker.new_host(4, 0, 0, 'a2a3sim');
        const seen = [];
        const args = Pto.TaskArgs.new();
        args.add_scalar_signed(-2);
        args.add_scalar_float(2.5);
        const orchestration = Pto.OrchestrationFunction.new('look', (orch, given) => {
            for (let i = 0; i < given.get_n_args(); i++)
                seen.push(given.get_scalar_value(i));
            return true;
        });
        const handle = host.register(orchestration, null);
        host.add_worker(Pto.Worker.new_host(3, 0, 1, 'a2a3sim'));
        host.run_callable(handle, args, null, null);
        equal(seen.join(), '-2,2.5', 'numbers');
        host.close();
    },
};

print(`1..${Object.keys(tests).length}`);
let failed = false;
for (const [name, test] of Object.entries(tests)) {
    try {
        test();
        print(`ok ${++count} ${name}`);
    } catch (error) {
        failed = true;
        print(`not ok ${++count} ${name}`);
        print(`# ${error}\n# ${error.stack.replaceAll('\n', '\n# ')}`);
    }
}
System.exit(failed ? 1 : 0);
