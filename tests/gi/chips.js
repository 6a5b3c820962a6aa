// chips.js: what do several tests in JavaScript run, on which chips?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

const [here] = System.programArgs;
export const elements = 16;
export const fill = Pto.Kernel.new(Pto.CoreType.AIV, GLib.build_filenamev([here, 'fill.c']), null);
export const hold = Pto.Kernel.new(Pto.CoreType.AIV, GLib.build_filenamev([here, 'hold.c']), null);
// What a buffer holds now: GJS may give a copy of it.
export const floats = buffer => new Float32Array(buffer.ref_bytes().toArray().buffer);
export const set_floats = (buffer, values) => buffer.write(0, new Uint8Array(Float32Array.from(values).buffer));

export function chip(backend) {
    const worker = Pto.Worker.new_chip('a2a3sim');
    worker.set_parameter('backend', backend);
    worker.start(null);
    return worker;
}

export function submit_fill(orch, buffer, value) {
    const args = new Pto.TaskArgs();
    args.add_tensor(Pto.Tensor.new_for_buffer(buffer, 0, Pto.Dtype.FLOAT32, [elements]), Pto.Direction.OUTPUT_EXISTING);
    args.add_scalar_float(value);
    orch.submit(fill, args);
}
