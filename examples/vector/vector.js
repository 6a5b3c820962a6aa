// vector.js: how does JavaScript run the five tasks of f = (a + b + 1)(a + b + 2) + (a + b)?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Not installed: meson devenv -C build --workdir "$PWD" gjs -m examples/vector/vector.js
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

const here = GLib.path_get_dirname(GLib.filename_from_uri(import.meta.url)[0]);
const [add, addScalar, mul] = ['add', 'add_scalar', 'mul'].map(name => Pto.Callable.kernel(`${here}/kernels/${name}.c`, {args: 3}));
const elements = 16384;

// No dependency is written down: the runtime finds them from what each task reads and writes.
function graph(orch, a, b, f) {
    for (const scope of orch.scope()) { // memory of c, d, e and g is given back behind it
        const [c, d, e, g] = [0, 1, 2, 3].map(() => scope.tensor(a.shape));
        scope.submit(add, a.read(), b.read(), c.write());
        scope.submit(addScalar, c.read(), d.write(), 1);
        scope.submit(addScalar, c.read(), e.write(), 2);
        scope.submit(mul, d.read(), e.read(), g.write());
        scope.submit(add, g.read(), c.read(), f.write_existing());
    }
}

const passed = await new Pto.Worker({platform: 'a2a3sim'}).use(async chip => {
    const [a, b, f] = [0, 1, 2].map(() => new Float32Array(elements).fill(NaN));
    a.forEach((_, i) => ([a[i], b[i]] = [i % 100 / 4, 3])); // all of it can be held without rounding
    const expected = a.map((value, i) => (value + b[i] + 1) * (value + b[i] + 2) + (value + b[i])); // before the run, of what it is given
    await chip.run_async(graph, a, b, f);

    const wrong = f.findIndex((value, i) => value !== expected[i]);
    const {tasks, edges} = chip.statistics;
    print(`${elements} elements, ${tasks} tasks, ${edges} edges${wrong < 0 ? '' : `, element ${wrong} is ${f[wrong]}`}: ${wrong < 0 ? 'PASS' : 'FAIL'}`);
    return wrong < 0;
});
System.exit(passed ? 0 : 1);
