// two_chips.js: how do two chips share one sum, from JavaScript?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Each chip adds up half of a vector; one of them adds the two sums, as a SUB worker can not call functions of JavaScript. That the
// third task waits for both others, and that these do not wait for each other, follows from what each reads and writes.
//
// Not installed: meson devenv -C build --workdir "$PWD" gjs -m examples/two-chips/two_chips.js
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

const here = GLib.path_get_dirname(GLib.filename_from_uri(import.meta.url)[0]);
const elements = 1 << 16;

const passed = await new Pto.Worker({level: 3, devices: 2}).use(async host => { // no process yet
    const [part, add] = ['partial-sum', '../worked-example/add'].map(name => host.register(Pto.Callable.chip(`${here}/${name}`)));

    function graph(orch, x, out) {
        const half = elements / 2, [a, b] = [0, 1].map(() => orch.alloc([1]));
        orch.submit_next_level(part, [x.subarray(0, half).read(), a.write()], {worker: 0});
        orch.submit_next_level(part, [x.subarray(half).read(), b.write()], {worker: 1});
        orch.submit_next_level(add, [a.read(), b.read(), out.write_existing()]); // on whichever is idle
    }

    const x = Pto.Buffer.array(elements), out = Pto.Buffer.array(1); // memory that children see
    x.forEach((_, i) => (x[i] = i % 1000 / 1000));
    const expected = x.reduce((total, value) => total + value); // before the run, of what it is given
    out[0] = NaN;
    await host.run_async(graph, x, out); // starts two processes, runs

    const isRight = Math.abs(out[0] - expected) <= 1e-5 * expected;
    print(`two chips: ${out[0].toFixed(3)}, expected ${expected.toFixed(3)}: ${isRight ? 'PASS' : 'FAIL'}`);
    return isRight;
});
System.exit(passed ? 0 : 1);
