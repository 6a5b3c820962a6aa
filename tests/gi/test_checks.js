// test_checks.js: does JavaScript refuse by its name what is not what the library wants?
// SPDX-License-Identifier: LGPL-2.1-or-later
import GIRepository from 'gi://GIRepository?version=2.0';
import GLib from 'gi://GLib';
import Pto from 'gi://Pto?version=1';

import {equal, main, refused} from './tap.js';

const {bytes, integers} = imports.overrides.PtoChecks;

// What the introspection data says of the arguments that JavaScript gives.
function argumentsOf(isWanted) {
    const {InfoType} = GIRepository, found = {}, repository = GIRepository.Repository.get_default();
    for (let i = 0; i < repository.get_n_infos('Pto'); i++) {
        const info = repository.get_info('Pto', i), isObject = info.get_type() === InfoType.OBJECT;
        const kind = isObject ? 'object' : [InfoType.BOXED, InfoType.STRUCT].includes(info.get_type()) ? 'struct' : null;
        for (let j = 0; kind !== null && j < GIRepository[`${kind}_info_get_n_methods`](info); j++) {
            const method = GIRepository[`${kind}_info_get_method`](info, j);
            const all = [...new Array(GIRepository.callable_info_get_n_args(method)).keys()].map(k => GIRepository.callable_info_get_arg(method, k));
            const lengths = all.map(arg => GIRepository.arg_info_get_type(arg)).filter(type => GIRepository.type_info_get_tag(type) === GIRepository.TypeTag.ARRAY)
                .map(type => GIRepository.type_info_get_array_length(type));
            const given = all.filter((arg, k) => !lengths.includes(k) && GIRepository.arg_info_get_direction(arg) === GIRepository.Direction.IN);
            given.forEach((arg, place) => {
                if (isWanted(GIRepository.arg_info_get_type(arg)))
                    (found[`${info.get_name()}.${method.get_name()}`] ??= []).push([place, arg.get_name()]);
            });
        }
    }
    return found;
}

function sorted(table) {
    return JSON.stringify(Object.entries(table).sort(([a], [b]) => a < b ? -1 : 1));
}

const isInteger = type => {
    const tag = GIRepository.type_info_get_tag(type);
    return tag >= GIRepository.TypeTag.INT8 && tag <= GIRepository.TypeTag.UINT64;
};
const isBytes = type => GIRepository.type_info_get_tag(type) === GIRepository.TypeTag.INTERFACE &&
    GIRepository.type_info_get_interface(type).get_name() === 'Bytes';

const tests = {
    'all that are integers are known': () => {
        equal(sorted(integers), sorted(argumentsOf(isInteger)), 'integers');
        equal(Object.keys(integers).length > 60, true, 'there are many');
    },

    'all that are bytes are known': () => {
        equal(sorted(bytes), sorted(argumentsOf(isBytes)), 'bytes');
    },

    'what is no integer is refused, and not 0': () => {
        const buffer = Pto.Buffer.new(16n), chip = new Pto.Worker({platform: 'a2a3sim'});
        for (const [call, part] of [
            [wrong => Pto.Buffer.new(wrong), 'Pto.Buffer.new: size: '],
            [wrong => buffer.read(wrong, 4), 'Pto.Buffer.read: offset: '],
            [wrong => buffer.read(0, wrong), 'Pto.Buffer.read: size: '],
            [wrong => buffer.write(wrong, new Uint8Array(1)), 'Pto.Buffer.write: offset: '],
            [wrong => buffer.copy_to(buffer, wrong ?? NaN), 'Pto.Buffer.copy_to: offset: '],
            [wrong => Pto.Tensor.new_for_buffer(buffer, wrong, Pto.Dtype.INT8, [4]), 'Pto.Tensor.new_for_buffer: offset: '],
            [wrong => Pto.Tensor.new_external(wrong, Pto.Dtype.INT8, [4]), 'Pto.Tensor.new_external: address: '],
            [wrong => chip.free(wrong), 'Pto.Worker.free: address: '],
            [wrong => chip.copy_from(0, wrong), 'Pto.Worker.copy_from: size: '],
            [wrong => chip.get_child(wrong), 'Pto.Worker.get_child: id: '],
        ]) {
            for (const wrong of [null, undefined, {}, [1], '1', true, 1.5])
                refused(() => call(wrong), TypeError, part);
        }
        chip.close();
    },

    'BigInts are integers': () => {
        const buffer = Pto.Buffer.new(16n);
        equal(buffer.size, 16, 'a size');
        buffer.write(15n, new Uint8Array([9]));
        equal(buffer.read(15n, 1n).toArray()[0], 9, 'an offset');
        const host = new Pto.Worker({level: 3, devices: [4]});
        equal(host.get_child(0n).dup_path(), host.get_child(0).dup_path(), 'of 32 bits, too');
        host.close();
    },

    'arrays are bytes': () => {
        const memory = new Int16Array([1, 2, 3]);
        for (const [data, expected] of [
            [new Uint8Array([1, 2]), '1,2,0,0'], [memory.subarray(1), '2,0,3,0'], [memory.buffer.slice(0, 4), '1,0,2,0'],
            [new DataView(memory.buffer, 4, 2), '3,0,0,0'], [new BigInt64Array([258n]), '2,1,0,0'], [new GLib.Bytes([5]), '5,0,0,0'],
        ]) {
            const buffer = Pto.Buffer.new(8);
            buffer.write(0, data);
            equal([...buffer.read(0, 4).toArray()].join(), expected, data.constructor.name);
        }
        const buffer = Pto.Buffer.new(8);
        for (const wrong of [[1, 2], 'text', 3, {}])
            refused(() => buffer.write(0, wrong), TypeError, 'Pto.Buffer.write: bytes: ');
        refused(() => buffer.write(0, new Float64Array(2)), Pto.Error, '16 bytes at offset 0 reach beyond a buffer of 8 bytes');
        equal(Pto.Tensor.new_for_bytes(new Float32Array([7, 8]), 4, Pto.Dtype.FLOAT32, [1]).to_array()[0], 8, 'of a tensor');
    },

    'collectives take what tensors are made of': () => {
        const host = new Pto.Worker({level: 3, sub_workers: 1}), [x, y] = [1, 2].map(value => Pto.Buffer.array(2).fill(value));
        host.run((orch, a, b) => {
            for (const name of ['allreduce', 'broadcast', 'barrier'])
                refused(() => orch[name](null), TypeError, `${name}: null is not a list of tensors: give one for each worker`);
            refused(() => orch.alltoall([a, b]), TypeError, 'alltoall: undefined is not a list of tensors');
            refused(() => orch.allreduce([3]), TypeError, '3 is no tensor');
            refused(() => orch.allreduce([a], 'mean'), TypeError, '"mean" is nothing that tensors are reduced by');
            const first = orch.allreduce([a, b]);
            orch.submit_order({after: [first]});
            orch.allreduce([x, y], 'max');
            orch.barrier([a, b]);
            orch.broadcast([a, b]);
        }, x, y);
        equal([...x, ...y].join(), '3,3,3,3', 'the sum of both');
        host.close();
    },
};

await main(tests);
