// test_mirrors.js: does an array over memory of the library hold what tasks wrote, also where GJS gives copies of memory?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

import {equal, main, refused, rejected} from './tap.js';

const [here] = System.programArgs;
const n = 1000;
const kernels = GLib.build_filenamev([here, '..', '..', 'examples', 'vector', 'kernels']);
const add = Pto.Callable.kernel(`${kernels}/add.c`, {args: 3}), addScalar = Pto.Callable.kernel(`${kernels}/add_scalar.c`, {args: 3});
const isCopied = (() => {
    const bytes = new GLib.Bytes(new Uint8Array(1));
    bytes.toArray()[0] = 1;
    return bytes.toArray()[0] === 0;
})();

// Some elements are what they were: with zeros between them.
const fill = (array, factor) => array.forEach((_, i) => (array[i] = i % 3 === 0 ? 0 : factor * i));
const check = (array, factor, plus, what) => {
    const wrong = array.findIndex((value, i) => value !== (i % 3 === 0 ? 0 : factor * i) + plus);
    equal(wrong, -1, `${what}, element ${wrong}: ${array[wrong]}`);
};
const plus = number => (orch, x, y) => orch.submit(addScalar, x.read(), y.write_existing(), number);

async function onChips(call) {
    for (const [backend, isolate] of [['par', false], ['det', false], ['threads', false], ['par', true]]) {
        const chip = new Pto.Worker({isolate});
        chip.set_parameter('backend', backend);
        await chip.use(() => call(chip));
    }
}

const tests = {
    // A run sees the first values, what is written between runs, and what an earlier run has written.
    runs: () => onChips(async chip => {
        const [x, y] = [Pto.Buffer.array(n), Pto.Buffer.array(n)];
        fill(x, 1);
        chip.run(plus(2), x, y);
        check(y, 1, 2, 'a run');
        y.fill(NaN);
        await chip.run_async(plus(3), x, y);
        check(y, 1, 3, 'an awaited run');
        fill(x, 2);
        chip.run(plus(1), x, x);
        check(x, 2, 1, 'in place');
        x[5] = 100;
        chip.run(plus(1), x, x);
        equal([x[5], x[4], x[6]].join(), '101,10,2', 'one element');
    }),

    failed: () => onChips(async chip => {
        const x = Pto.Buffer.array(n), y = Pto.Buffer.array(n);
        fill(x, 1);
        const fail = (orch, a, b) => {
            plus(4)(orch, a, b);
            equal(orch.get_element(b, [1]), 5, 'an element');
            throw new RangeError('my own words');
        };
        refused(() => chip.run(fail, x, y), RangeError, 'my own words');
        check(y, 1, 4, 'written');
        y.fill(0);
        await rejected(chip.run_async(fail, x, y), RangeError, 'my own words');
        check(y, 1, 4, 'written');
    }),

    // Arrays of the function instead of the run, and of a graph captured with others.
    elsewhere: () => onChips(async chip => {
        const [x, y] = [Pto.Buffer.array(n), Pto.Buffer.array(n)], [a, b] = [x, y].map(array => Pto.Tensor.of(array));
        fill(x, 1);
        chip.run(orch => plus(2)(orch, a, b));
        check(y, 1, 2, 'of the function');
        const graph = chip.capture(plus(3), Pto.Buffer.array(n), Pto.Buffer.array(n));
        fill(x, 3);
        chip.run(graph, x, y);
        check(y, 3, 3, 'of a graph');
        fill(x, 2);
        await chip.run_async(graph, x, y);
        check(y, 2, 3, 'of an awaited graph');
    }),

    // In the function: what is written before a submit is there, and what a call has waited for can be read.
    inside: () => onChips(chip => {
        const x = Pto.Buffer.array(n), y = Pto.Buffer.array(n);
        chip.run((orch, a, b) => {
            fill(x, 1);
            plus(2)(orch, a, b);
            equal(orch.get_element(b, [7]), 9, 'an element');
            equal(y[7], 9, 'the same of the array');
            orch.set_element(b, [8], 50);
            equal(y[8], 50, 'an element that was set');
            y[9] = 60;
            orch.submit(add, b.read(), b.read(), b.update());
        }, x, y);
        equal([y[7], y[8], y[9], y[10]].join(), '18,100,120,24', 'afterwards');
        const plain = new Float32Array(n), out = new Float32Array(n);
        chip.run((orch, a, b) => {
            fill(a.to_array(), 3);
            plus(1)(orch, a, b);
        }, plain, out);
        check(out, 3, 1, 'through the memory of an argument');
        check(plain, 3, 0, 'which goes back, too');
        const args = new Pto.TaskArgs();
        args.add_tensor(Pto.Tensor.of(x), Pto.Direction.INPUT);
        args.add_tensor(Pto.Tensor.of(y), Pto.Direction.OUTPUT_EXISTING);
        args.add_scalar_float(6);
        chip.run(orch => {
            fill(x, 4);
            orch.submit(addScalar, args);
        });
        check(y, 4, 6, 'of arguments that were made before');
        chip.run((orch, given) => {
            fill(x, 5);
            orch.submit(addScalar, given.get_tensor(0).read(), given.get_tensor(1).write_existing(), 7);
        }, args, null);
        check(y, 5, 7, 'of arguments as in C');
    }),

    // Elements that the program did not write are not written back, whatever size they have.
    beside: () => onChips(async chip => {
        const kernel = `${GLib.Dir.make_tmp('pto-js-XXXXXX')}/odd.c`;
        GLib.file_set_contents(kernel, `#include "tensor.h"
void kernel_entry (int64_t *args)
{
  const TensorData *tensor = (const TensorData *) args[0];
  for (uint64_t i = 1; i < tensor->shapes[0]; i += 2)
    ((uint8_t *) tensor->buffer.addr)[tensor->start_offset + i] = 7;
}\n`);
        const odd = Pto.Callable.kernel(kernel, {args: 1}), x = Pto.Buffer.array(15, 'uint8');
        const first = chip.run_async((orch, a) => orch.submit(odd, a.update()), x);
        x.forEach((_, i) => (x[i] = i % 2 === 0 ? 3 : x[i]));
        await first;
        equal(x.join(''), '373737373737373', 'both');
        chip.run((orch, a) => orch.submit(odd, a.update()), x.subarray(0, 5));
        x[12] = 4;
        equal([...Pto.Tensor.of(x).ref_bytes().toArray()].join(''), '373737373737473', 'the memory');
        GLib.unlink(kernel);
        GLib.rmdir(GLib.path_get_dirname(kernel));
    }),

    // Other ways to the same memory.
    buffers() {
        const buffer = Pto.Buffer.new(16), x = Pto.Tensor.of(buffer, [4], 'int32').to_array(), y = Pto.Tensor.of(buffer, [2], 'int64').to_array();
        buffer.write(4, new Int32Array([5]));
        equal(x.join(), '0,5,0,0', 'written');
        x[2] = 6;
        equal(new Int32Array(buffer.read(8, 4).toArray().slice().buffer)[0], 6, 'read');
        equal(new Int32Array(buffer.ref_bytes().toArray().slice().buffer).join(), '0,5,6,0', 'the bytes');
        equal(y[1], 6n, 'another type');
        const other = Pto.Buffer.new(16), z = Pto.Tensor.of(other, [4], 'int32').to_array();
        x[0] = 1;
        buffer.copy_to(other);
        equal(z.join(), '1,5,6,0', 'copied');
        const chip = new Pto.Worker();
        chip.start();
        const device = chip.alloc_buffer(16), address = Pto.Tensor.of(x).address;
        x[3] = 9;
        chip.copy_to_address(device.address, address, 16);
        equal(new Int32Array(device.read(0, 16).toArray().slice().buffer).join(), '1,5,6,9', 'to a device');
        device.write(0, new Int32Array([8]));
        chip.copy_from_address(address, device.address, 16);
        equal(x.join(), '8,5,6,9', 'from a device');
        chip.close();
    },

    // Children see it, and what they write comes back.
    async levels() {
        for (const child_mode of ['process', 'thread']) {
            await new Pto.Worker({level: 3, devices: 2, child_mode}).use(async host => {
                const sum = host.register(Pto.Callable.chip(GLib.build_filenamev([here, '..', '..', 'examples', 'worked-example', 'add'])));
                const [x, y, z] = [0, 1, 2].map(() => Pto.Buffer.array(n));
                fill(x, 1);
                y.fill(2);
                const graph = (orch, a, b, c) => orch.submit_next_level(sum, [a.read(), b.read(), c.write_existing()]);
                host.run(graph, x, y, z);
                check(z, 1, 2, child_mode);
                y.fill(3);
                await host.run_async(graph, x, y, z);
                check(z, 1, 3, child_mode);
            });
        }
    },

    // What no array can mirror is refused, never zeros.
    refusals() {
        new Pto.Worker().use(chip => chip.run(orch => {
            const memory = orch.alloc([4]);
            orch.set_element(memory, [2], 5);
            if (isCopied)
                refused(() => memory.to_array(), TypeError, 'this version of GJS only copies memory');
            else
                equal(memory.to_array().join(), '0,0,5,0', 'of a ring');
        }));
    },

    // More than a collection can wait for: functions are called, promises settled.
    async large() {
        const chip = new Pto.Worker(), size = 1 << 20;
        await chip.use(async () => {
            for (let i = 1; i <= 12; i++) {
                const x = Pto.Buffer.array(size).fill(i), y = new Float32Array(size);
                chip.run(plus(1), x, y);
                equal(y[size - 1], i + 1, 'a run');
                await chip.run_async(plus(2), x, x);
                equal(x[0], i + 2, 'an awaited one');
            }
        });
    },
};

await main(tests);
