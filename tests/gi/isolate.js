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
worker.close();
GLib.unlink(evilPath);
GLib.rmdir(GLib.path_get_dirname(evilPath));
print(`1..${count}`);
System.exit(failures > 0 ? 1 : 0);
