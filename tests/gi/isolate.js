// isolate.js: is a chip in a process of its own the same from JavaScript?
// SPDX-License-Identifier: LGPL-2.1-or-later
imports.gi.versions.Pto = '1';
const {GLib, Pto} = imports.gi;
const System = imports.system;

const source = GLib.build_filenamev([GLib.getenv('PTO_TEST_GI'), 'fill.c']);
let failures = 0;
let count = 0;

function check(what, good) {
    count++;
    failures += good ? 0 : 1;
    print(`${good ? 'ok' : 'not ok'} ${count} ${what}`);
}

const fill = Pto.Kernel.new(Pto.CoreType.AIV, source, null);
const evilPath = GLib.build_filenamev([GLib.dir_make_tmp('pto-js-XXXXXX'), 'evil.c']);
GLib.file_set_contents(evilPath, '#include <unistd.h>\n#include <stdint.h>\nvoid kernel_entry (int64_t *args) { (void) args; _exit (3); }\n');
const evil = Pto.Kernel.new(Pto.CoreType.AIV, evilPath, null);

const worker = new Pto.Worker({platform: 'a2a3sim', isolate: true});
check('the property', worker.isolate);
worker.start(null);
const buffer = Pto.Buffer.new(64);
const x = Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [16]);

function run(kernel, value) {
    worker.run((orchestrator, args, config) => {
        const given = Pto.TaskArgs.new();
        given.add_tensor(x, Pto.Direction.OUTPUT_EXISTING);
        given.add_scalar_float(value);
        return orchestrator.submit(kernel, given);
    }, null, null, null);
}

function values() {
    return new Float32Array(buffer.ref_bytes().toArray().buffer.slice(0, 64));
}

run(fill, 5);
check('a run', values().every(value => value === 5));
try {
    run(evil, 1);
    check('a kernel that exits', false);
} catch (error) {
    check('a kernel that exits', /task 0 of ring 0 \(.*\) on core AIV\d+: the kernel called _exit\(3\)/.test(error.message));
}
run(fill, 6);
check('the next run', values().every(value => value === 6));

// Graphs: captured there and built here, launched by the process that has run them and by another.
function given(...all) {
    const list = Pto.TaskArgs.new();
    for (const one of all) {
        if (typeof one === 'number')
            list.add_scalar_float(one);
        else
            list.add_tensor(one, Pto.Direction.OUTPUT_EXISTING);
    }
    return list;
}
const captured = worker.capture((orchestrator, args, config) =>
    orchestrator.submit(fill, given(args.get_tensor(0), 8)), given(x), null, null);
check('a capture', captured.get_n_tasks() === 1 && values().every(value => value === 6));
const byHand = new Pto.Graph();
const argument = byHand.add_argument(Pto.Dtype.FLOAT32, [16]);
byHand.add_task(fill, given(argument, 9));
const deadly = worker.capture((orchestrator, args, config) => {
    orchestrator.submit(fill, given(args.get_tensor(0), 7));
    return orchestrator.submit(evil, given(args.get_tensor(0)));
}, given(x), null, null);
for (let i = 0; i < 2; i++) {
    worker.run_graph(captured, given(x), null, null);
    check('a launch of what was captured', values().every(value => value === 8));
    worker.run_graph(byHand, given(x), null, null);
    check('a launch of what was built', values().every(value => value === 9));
    try {
        worker.run_graph(deadly, given(x), null, null);
        check('a launch that ends the process', false);
    } catch (error) {
        check('a launch that ends the process', /task 1 of ring 0 .*_exit\(3\)/.test(error.message));
    }
}
worker.close();
GLib.unlink(evilPath);
GLib.rmdir(GLib.path_get_dirname(evilPath));
print(`1..${count}`);
System.exit(failures > 0 ? 1 : 0);
