// PtoArrays.js: how is memory of JavaScript the library's, and the other way round?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An array over memory of the library is shared with tasks and processes. Memory that JavaScript has allocated has no address that
// it may be asked for, and moves: it is copied, for a run there and back.
const {arrayInMirror, copyOf, isShared, mirrorOf, push} = imports.overrides.PtoMirrors;
const {_, shown} = imports.overrides.PtoText;

const arrays = {
    BOOL: Uint8Array,
    BFLOAT16: Uint16Array, // their bits, as there is no such array
    FLOAT16: Uint16Array,
    FLOAT32: Float32Array,
    FLOAT64: Float64Array,
    FLOAT8_E4M3FN: Uint8Array,
    FLOAT8_E5M2: Uint8Array,
    INT4: Uint8Array,
    INT8: Int8Array,
    INT16: Int16Array,
    INT32: Int32Array,
    INT64: BigInt64Array,
    UINT8: Uint8Array,
    UINT16: Uint16Array,
    UINT32: Uint32Array,
    UINT64: BigUint64Array,
};
const typesOfArrays = new Map([
    [Float32Array, 'FLOAT32'], [Float64Array, 'FLOAT64'], [Int8Array, 'INT8'], [Int16Array, 'INT16'], [Int32Array, 'INT32'],
    [BigInt64Array, 'INT64'], [Uint8Array, 'UINT8'], [Uint8ClampedArray, 'UINT8'], [Uint16Array, 'UINT16'], [Uint32Array, 'UINT32'],
    [BigUint64Array, 'UINT64'],
]);

const shared = new WeakMap(); // ArrayBuffer -> the Pto.Buffer or Pto.Tensor whose memory it is

function isArray(what) {
    return ArrayBuffer.isView(what) && !(what instanceof DataView);
}

// A number of Pto.Dtype, a name, or the class of an array; what is none of them as it is, to be refused.
function dtypeOf(what) {
    const {Dtype} = imports.gi.Pto;
    if (typesOfArrays.has(what))
        return Dtype[typesOfArrays.get(what)];
    if (typeof what !== 'string')
        return what;
    const name = what.toUpperCase().replaceAll('-', '_');
    return Dtype[{FLOAT8_E4M3: 'FLOAT8_E4M3FN'}[name] ?? name] ?? what;
}

function arrayTypeOf(dtype) {
    return arrays[Object.entries(imports.gi.Pto.Dtype).find(([, value]) => value === dtype)?.[0]];
}

function countOf(shape) {
    return shape.reduce((count, extent) => count * extent, 1);
}

function checkShape(where, shape) {
    const list = Array.isArray(shape) ? shape : [shape];
    const wrong = list.find(extent => !Number.isSafeInteger(extent) || extent < 1);
    if (list.length === 0 || wrong !== undefined)
        throw new TypeError(_('%s: %s is no extent of a shape: integers from 1 up are', where, list.length === 0 ? '[]' : shown(wrong)));
    if (!Number.isSafeInteger(countOf(list) * 8))
        throw new RangeError(_('%s: there is no memory for the shape [%s]', where, list));
    return list;
}

function sharedBy(owner, array) {
    shared.set(array.buffer, owner);
    return array;
}

// Of zeros, which tasks and child processes see, too.
function makeArray(shape, dtype = 'float32') {
    const Type = arrayTypeOf(dtypeOf(dtype)), {Buffer} = imports.gi.Pto;
    if (Type === undefined)
        throw new TypeError(_('%s: %s is none of Pto.%s', 'Pto.Buffer.array', dtype?.name ?? shown(dtype), 'Dtype'));
    const length = countOf(checkShape('Pto.Buffer.array', shape));
    const buffer = Buffer.new(length * Type.BYTES_PER_ELEMENT);
    return sharedBy(buffer, isShared() ? new Type(buffer.ref_bytes().toArray().buffer, 0, length) : mirrorOf(buffer).arrayOf(Type, 0, length));
}

// The extents of a list of lists of numbers, which all have to agree.
function extentsOf(list) {
    if (!Array.isArray(list))
        return [];
    const [first = [], ...others] = list.map(extentsOf);
    if (others.some(other => other.join() !== first.join()))
        throw new TypeError(_('a list whose parts are of different lengths is no tensor'));
    return [list.length, ...first];
}

// Numbers without a type are float32, as everywhere here.
function arrayOfList(list) {
    const numbers = list.flat(Infinity);
    for (const value of numbers) {
        if (typeof value !== 'number')
            throw new TypeError(_('a list becomes float32: %s is no Number, give a BigInt64Array or what you mean', shown(value)));
        const is_lost = Number.isInteger(value) ? Math.fround(value) !== value
            : Number.isFinite(value) && !Number.isFinite(Math.fround(value));
        if (is_lost)
            throw new RangeError(_('a list becomes float32, which can not hold %s: give a Float64Array, or of the type that you mean', value));
    }
    return Float32Array.from(numbers);
}

function bytesOf(array) {
    return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function bufferOf(array) {
    const {Buffer} = imports.gi.Pto, buffer = Buffer.new(array.byteLength);
    buffer.write(0, bytesOf(array));
    return buffer;
}

// In memory that is shared already; undefined where it is JavaScript's.
function tensorInShared(array, dtype, shape) {
    const {Buffer, Tensor} = imports.gi.Pto, owner = shared.get(array.buffer), size = array.BYTES_PER_ELEMENT;
    if (owner instanceof Buffer)
        return Tensor.new_for_buffer(owner, array.byteOffset, dtype, shape);
    if (owner === undefined || owner.dtype !== dtype) // of one type alone: a copy for the run is as good
        return undefined;
    return owner.reshape([owner.n_elements]).view([array.length], [array.byteOffset / size]).reshape(shape);
}

function shapeFor(array, shape) {
    if (array.length === 0)
        throw new TypeError(_('an empty array is no tensor'));
    const given = shape === null ? [array.length] : checkShape('Pto.Tensor.of: shape', shape);
    if (countOf(given) !== array.length)
        throw new TypeError(_('%s: a shape of %s elements, [%s], for an array of %s', 'Pto.Tensor.of', countOf(given), given, array.length));
    return given;
}

// Pto.Dtype of its elements; another one of that size, as bfloat16 for a Uint16Array, if it is said.
function dtypeFor(array, dtype) {
    const own = typesOfArrays.get([...typesOfArrays.keys()].find(Type => array instanceof Type));
    if (dtype === null)
        return imports.gi.Pto.Dtype[own];
    const chosen = dtypeOf(dtype);
    if (arrayTypeOf(chosen)?.BYTES_PER_ELEMENT !== array.BYTES_PER_ELEMENT)
        throw new TypeError(_('%s: %s is no type of elements for a %s', 'Pto.Tensor.of', shown(dtype), array.constructor.name));
    return chosen;
}

// A tensor of what is like one. What JavaScript has allocated is copied here and now, and can only be read.
function tensorOf(what, shape = null, dtype = null) {
    const {Buffer, Tensor} = imports.gi.Pto;
    if (what instanceof Tensor) {
        push(what);
        return shape === null ? what : what.reshape(shape);
    }
    if (what instanceof Buffer) {
        const type = dtypeOf(dtype ?? 'uint8'), Type = arrayTypeOf(type);
        if (Type === undefined)
            throw new TypeError(_('%s: %s is none of Pto.%s', 'Pto.Tensor.of', shown(dtype), 'Dtype'));
        return Tensor.new_for_buffer(what, 0, type, shape ?? [Math.floor(what.size / Type.BYTES_PER_ELEMENT)]);
    }
    if (Array.isArray(what))
        return tensorOf(arrayOfList(what), shape ?? extentsOf(what), dtype);
    if (!isArray(what)) {
        throw new TypeError(what instanceof ArrayBuffer || what instanceof DataView
            ? _('an ArrayBuffer, which does not say what is in it, is no tensor: a tensor, a buffer, an array such as a Float32Array ' +
                'or a list of numbers is wanted')
            : _('%s is no tensor: a tensor, a buffer, an array such as a Float32Array or a list of numbers is wanted', shown(what)));
    }
    const type = dtypeFor(what, dtype), extents = shapeFor(what, shape);
    return tensorInShared(what, type, extents) ?? Tensor.new_for_buffer(bufferOf(what), 0, type, extents).as_read_only();
}

// The memory of a tensor; a copy of what can only be read, as an array can be written.
function arrayOf(tensor) {
    if (!tensor.is_contiguous())
        throw new TypeError(_('%s: %s has gaps between its elements, which no array has', 'to_array', tensor.to_string()));
    const bytes = tensor.ref_bytes(), Type = arrayTypeOf(tensor.dtype), length = tensor.n_elements;
    if (tensor.is_read_only())
        return new Type(bytes.toArray().buffer, 0, length).slice();
    if (isShared())
        return sharedBy(tensor, new Type(bytes.toArray().buffer, 0, length));
    const {array, buffer} = arrayInMirror(tensor, Type, length);
    return sharedBy(buffer, array);
}

// The arrays of one run whose memory is JavaScript's: what overlaps there does so in the copies, too.
var Copies = class {
    constructor(all) {
        this._ranges = new Map(); // ArrayBuffer -> {begin, end, memory}, in bytes
        this._arrays = [...new Set(all)].filter(what => isArray(what) && what.length > 0 && tensorInShared(what, dtypeFor(what, null), [what.length]) === undefined);
        for (const {buffer, byteOffset, byteLength} of this._arrays) {
            const range = this._ranges.get(buffer) ?? {begin: Infinity, end: 0};
            range.begin = Math.min(range.begin, byteOffset - byteOffset % 8);
            range.end = Math.max(range.end, byteOffset + byteLength);
            this._ranges.set(buffer, range);
        }
        for (const [buffer, range] of this._ranges)
            range.memory = bufferOf(new Uint8Array(buffer, range.begin, range.end - range.begin));
    }

    tensorOf(what) {
        if (!this._arrays.includes(what))
            return tensorOf(what);
        const {begin, memory} = this._ranges.get(what.buffer);
        return imports.gi.Pto.Tensor.new_for_buffer(memory, what.byteOffset - begin, dtypeFor(what, null), [what.length]);
    }

    // What the run has written, and nothing beside the arrays that it was given.
    takeBack() {
        for (const array of this._arrays) {
            const {begin, memory} = this._ranges.get(array.buffer);
            const at = array.byteOffset - begin;
            bytesOf(array).set(copyOf(memory.ref_bytes().new_from_bytes(at, array.byteLength)));
        }
    }
};
