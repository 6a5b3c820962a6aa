// PtoMirrors.js: what does an array over memory of the library hold where GJS only gives copies of memory?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// GLib.Bytes.toArray() gives the memory itself in GJS 1.74, and a copy in GJS 1.82, where no other call gives it either. There an
// array mirrors a Pto.Buffer: what the program has written since the last time goes to the memory before a task can read it, and
// what is in the memory comes to the array when a run has ended. Elements that the program has not written are never written
// back: a run that is under way may have changed them.
const {GLib} = imports.gi;
const {gc} = imports.system;
const {_} = imports.overrides.PtoText;

// Tried, never assumed.
function isShared() {
    const bytes = new GLib.Bytes(new Uint8Array(1));
    bytes.toArray()[0] = 1;
    return bytes.toArray()[0] === 1;
}

// Much that is allocated begins a collection in slices, and until its end GJS refuses to call any function: a whole one comes before.
const MOST_ALLOCATED = 1 << 23;
let n_allocated = 0;
function collectAfter(n_bytes) {
    n_allocated += n_bytes;
    if (n_allocated < MOST_ALLOCATED || isShared())
        return;
    n_allocated = 0;
    gc();
}

function copyOf(bytes) {
    const array = bytes.toArray();
    collectAfter(array.length);
    return array;
}

const ofBuffers = new WeakMap(); // Pto.Buffer -> its Mirror
const ofTensors = new WeakMap(); // Pto.Tensor -> the Mirror of the buffer that it is in
const ofArgs = new WeakMap(); // Pto.TaskArgs -> tensors in it
const touched = new Set(); // Mirrors that tasks of the runs under way may write
const addressed = new Set(); // WeakRefs to Mirrors whose address the program has asked for
let n_running = 0; // runs that have begun
let n_writing = 0; // and whose tasks may write by now
let plain = null; // methods as C has them

const units = {1: Uint8Array, 2: Uint16Array, 4: Uint32Array};

class Mirror {
    constructor(buffer) {
        Object.assign(this, {buffer, address: plain.get_address.call(buffer), size: buffer.get_size(), unit: 4, memory: null, before: null});
    }

    // memory: what arrays are over. before: what it held when it was last the same as the buffer.
    arrayOf(Type, offset, length) {
        this.unit = Math.min(this.unit, Type.BYTES_PER_ELEMENT);
        while (this.size % this.unit > 0)
            this.unit /= 2;
        if (this.memory === null) {
            this.memory = new ArrayBuffer(this.size);
            this.before = new ArrayBuffer(this.size);
            collectAfter(2 * this.size);
        } else {
            this.push();
        }
        this.pull();
        return new Type(this.memory, offset, length);
    }

    bytesOf(memory, begin, end) {
        return new Uint8Array(memory, begin, end - begin);
    }

    held(begin, end) {
        return plain.ref_bytes.call(this.buffer).new_from_bytes(begin, end - begin);
    }

    write(begin, bytes) {
        plain.write.call(this.buffer, begin, bytes);
        for (const memory of [this.memory, this.before])
            this.bytesOf(memory, begin, begin + bytes.length).set(bytes);
    }

    // Where the program has written: begin and end of each part, in bytes.
    changes(begin, end) {
        const {unit} = this, [mine, before] = [this.memory, this.before].map(memory => new units[unit](memory));
        const parts = [], last = Math.ceil(end / unit);
        for (let i = Math.floor(begin / unit); i < last; i++) {
            if (mine[i] === before[i])
                continue;
            const at = i++;
            while (i < last && mine[i] !== before[i])
                i++;
            parts.push([at * unit, i * unit]);
        }
        return parts;
    }

    // Many parts go at once where no task writes beside them.
    push(begin = 0, end = this.size) {
        const parts = this.memory === null ? [] : this.changes(begin, end), mine = (from, to) => this.bytesOf(this.memory, from, to);
        if (parts.length < 2 || n_writing > 0) {
            for (const [from, to] of parts)
                this.write(from, mine(from, to));
            return;
        }
        const [[first]] = parts, bytes = copyOf(this.held(first, parts.at(-1)[1]));
        for (const [from, to] of parts)
            bytes.set(mine(from, to), from - first);
        this.write(first, bytes);
    }

    // After a push.
    pull(begin = 0, end = this.size) {
        if (this.memory === null)
            return;
        const bytes = this.held(begin, end);
        if (bytes.equal(this.bytesOf(this.before, begin, end)))
            return;
        const array = copyOf(bytes);
        for (const memory of [this.memory, this.before])
            this.bytesOf(memory, begin, end).set(array);
    }
}

function* allAddressed() {
    for (const ref of addressed) {
        const mirror = ref.deref();
        if (mirror === undefined)
            addressed.delete(ref);
        else
            yield mirror;
    }
}

function addressOf(tensor) {
    return plain.tensor_get_address.call(tensor);
}

function mirrorOf(buffer) {
    if (!ofBuffers.has(buffer))
        ofBuffers.set(buffer, new Mirror(buffer));
    return ofBuffers.get(buffer);
}

// What C gives is known by where it is. Undefined of memory that no buffer of JavaScript's has.
function mirrorOfTensor(tensor) {
    if (touched.size + addressed.size > 0 && !ofTensors.has(tensor)) {
        const address = addressOf(tensor), mirror = [...touched, ...allAddressed()].find(one => address >= one.address && address < one.address + one.size);
        if (mirror !== undefined)
            ofTensors.set(tensor, mirror);
    }
    return ofTensors.get(tensor);
}

function touch(mirror) {
    if (n_running > 0)
        touched.add(mirror);
}

// What the program has written in memory that a task is to be given.
function push(tensor) {
    const mirror = mirrorOfTensor(tensor);
    if (mirror === undefined)
        return;
    touch(mirror);
    if (mirror.memory !== null) {
        const begin = addressOf(tensor) - mirror.address;
        mirror.push(begin, begin + plain.tensor_ref_bytes.call(tensor).get_size());
    }
}

function pushArguments(args) {
    for (const tensor of ofArgs.get(args) ?? [])
        push(tensor);
}

// One element, which a call has waited for, or has written.
function pullElement(tensor, index) {
    const mirror = mirrorOfTensor(tensor);
    if (mirror === undefined || mirror.memory === null)
        return;
    const element = tensor.view(index.map(() => 1), index), begin = addressOf(element) - mirror.address;
    mirror.pull(begin, begin + element.get_n_bytes());
}

function arrayInMirror(tensor, Type, length) {
    const mirror = mirrorOfTensor(tensor);
    if (mirror === undefined) {
        throw new TypeError(_('%s: this version of GJS only copies memory, and no array can mirror that of %s: Pto.Buffer.array() and ' +
            'Pto.Buffer.new() make memory that one can. orch.get_element() and read() of a buffer give its values', 'to_array', tensor.to_string()));
    }
    touch(mirror);
    return {array: mirror.arrayOf(Type, addressOf(tensor) - mirror.address, length), buffer: mirror.buffer};
}

function around(where, name, before, after = () => {}) {
    const original = where[name], {length} = original;
    const method = function (...args) {
        before(this, ...args);
        try {
            return original.apply(this, args);
        } finally {
            after(this, ...args);
        }
    };
    where[name] = Object.defineProperty(method, 'length', {value: length});
}

// A run ends with what its tasks have written in the arrays, however it ends.
function takeRuns(where) {
    const begin = given => {
        n_running++;
        given.forEach(pushArguments);
        n_writing++;
    };
    const end = () => {
        n_writing--;
        for (const mirror of touched) {
            mirror.push();
            mirror.pull();
        }
        n_running--;
        if (n_running === 0)
            touched.clear();
    };
    for (const name of ['run', 'run_callable', 'run_graph']) {
        around(where, name, (_worker, ...given) => begin(given), end);
        around(where, `${name}_finish`, () => {}, end);
        const begun = `${name}_async`, original = where[begun], {length} = original;
        const method = function (...args) {
            begin(args);
            try {
                return original.apply(this, args);
            } catch (error) { // it has not begun
                end();
                throw error;
            }
        };
        where[begun] = Object.defineProperty(method, 'length', {value: length});
    }
}

// The program may give a worker the address of memory of its own.
function takeAddresses({Buffer, Tensor, Worker}) {
    const all = call => () => [...allAddressed()].forEach(call);
    for (const [where, find] of [[Buffer.prototype, buffer => ofBuffers.get(buffer)], [Tensor.prototype, mirrorOfTensor]]) {
        around(where, 'get_address', of => {
            const mirror = find(of);
            if (mirror !== undefined && !mirror.isAddressed) {
                mirror.isAddressed = true;
                addressed.add(new WeakRef(mirror));
            }
        });
    }
    for (const name of ['copy_from_address', 'copy_to_address'])
        around(Worker.prototype, name, all(mirror => mirror.push()), all(mirror => mirror.pull()));
}

function takeMirrors(Pto) {
    const {Buffer, TaskArgs, Tensor, Worker} = Pto, buffers = Buffer.prototype;
    const {get_address, ref_bytes, write} = buffers;
    plain = {get_address, ref_bytes, write, tensor_get_address: Tensor.prototype.get_address, tensor_ref_bytes: Tensor.prototype.ref_bytes};
    const pushed = buffer => ofBuffers.get(buffer)?.push();
    const pulled = buffer => ofBuffers.get(buffer)?.pull();
    around(buffers, 'ref_bytes', pushed);
    around(Tensor.prototype, 'ref_bytes', push);
    around(buffers, 'read', pushed);
    around(buffers, 'write', pushed, pulled);
    around(buffers, 'copy_to', (from, to) => [from, to].forEach(pushed), (from, to) => pulled(to));

    const {new_for_buffer} = Tensor;
    Tensor.new_for_buffer = function (buffer, ...rest) {
        const tensor = new_for_buffer.call(this, buffer, ...rest);
        if (!isShared() && buffer.get_worker() === null) {
            ofTensors.set(tensor, mirrorOf(buffer));
            push(tensor);
        }
        return tensor;
    };
    for (const name of ['as_read_only', 'as_strided', 'reshape', 'transpose', 'view']) {
        const original = Tensor.prototype[name];
        Tensor.prototype[name] = function (...args) {
            const tensor = original.apply(this, args), mirror = mirrorOfTensor(this);
            if (mirror !== undefined)
                ofTensors.set(tensor, mirror);
            return tensor;
        };
    }
    for (const name of ['add_tensor', 'add_reduction', 'add_reduction_kernel', 'set_condition']) {
        around(TaskArgs.prototype, name, (args, tensor) => {
            if (mirrorOfTensor(tensor) === undefined)
                return;
            if (!ofArgs.has(args))
                ofArgs.set(args, []);
            ofArgs.get(args).push(tensor);
        });
    }
    around(TaskArgs.prototype, 'reset', args => ofArgs.delete(args));
    takeRuns(Worker.prototype);
    takeAddresses(Pto);
}
