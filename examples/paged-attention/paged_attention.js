// paged_attention.js: how does JavaScript submit online softmax attention over a paged cache?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The chain of orchestration/paged_attention_orch.c, of a function: HUB makes empty accumulators, then each block of a request's
// context goes through QK (scores), SF (weights), PV (weighted values) and UP, which folds it into the accumulators. Kernels get
// the block that they need as a view of the cache, cut where the request ends.
//
// Not installed: meson devenv -C build --workdir "$PWD" gjs -m examples/paged-attention/paged_attention.js
import GLib from 'gi://GLib';
import System from 'system';
import Pto from 'gi://Pto?version=1';

const here = GLib.path_get_dirname(GLib.filename_from_uri(import.meta.url)[0]);
const kernel = (name, core, args) => Pto.Callable.kernel(`${here}/kernels/${name}.c`, {core, args});
const [qk, sf, pv, up, hub] = [kernel('qk_matmul', 'aic', 3), kernel('softmax_prepare', 'aiv', 6), kernel('pv_matmul', 'aic', 3),
    kernel('online_update', 'aiv', 8), kernel('hub', 'aiv', 3)];

const [heads, kvHeads, tile, dim, blockSize] = [16, 2, 8, 64, 32];
const lengths = [1, 32, 100, 257]; // tokens of each request
const group = heads / kvHeads, scale = 1 / Math.sqrt(dim);
const blocksOf = length => Math.ceil(length / blockSize);
const nBlocks = lengths.reduce((sum, length) => sum + blocksOf(length), 0);

// One tile of heads of one request; table: its blocks in the caches.
function submitChain(orch, [query, keys, values, out], request, firstHead, table) {
    const length = lengths[request], kvHead = Math.floor(firstHead / group);
    const [q, o] = [query, out].map(x => x.view([1, tile, dim], [request, firstHead, 0]));
    const [oi, li, mi] = [[tile, dim], [tile], [tile]].map(shape => orch.tensor(shape));

    orch.submit(hub, oi.write(), li.write(), mi.write());
    table.forEach((block, i) => {
        const left = length - i * blockSize, tokens = Math.min(left, blockSize), isLast = tokens === left;
        const [k, v] = [keys, values].map(cache => cache.view([1, tokens, 1, dim], [block, 0, kvHead, 0]));
        const [sij, pij, oiNew] = [[tile, blockSize], [tile, blockSize], [tile, dim]].map(shape => orch.tensor(shape));
        const [mij, lij] = [0, 1].map(() => orch.tensor([tile]));

        orch.submit(qk, q.read(), k.read(), sij.write());
        orch.submit(sf, sij.read(), pij.write(), mij.write(), lij.write(), Pto.int(tokens), scale);
        orch.submit(pv, pij.read(), v.read(), oiNew.write());
        orch.submit(up, mij.read(), lij.read(), oiNew.read(), mi.update(), li.update(), oi.update(),
            isLast ? o.write_existing() : o.no_dep(), Pto.int(isLast ? 1 : 0));
    });
}

function graph(orch, query, keys, values, out) {
    const given = [query.reshape([lengths.length, heads, dim]), keys.reshape([nBlocks, blockSize, kvHeads, dim]),
        values.reshape([nBlocks, blockSize, kvHeads, dim]), out.reshape([lengths.length, heads, dim])];
    for (let request = 0; request < lengths.length; request++) {
        for (let head = 0; head < heads; head += tile) {
            for (const scope of orch.scope())
                submitChain(scope, given, request, head, tables[request]);
        }
    }
}

// The plain softmax over all tokens, in double: nothing of the online algorithm.
function expectedOf(query, keys, values, request, head, table) {
    const at = token => ((table[Math.floor(token / blockSize)] * blockSize + token % blockSize) * kvHeads + Math.floor(head / group)) * dim;
    const q = query.subarray((request * heads + head) * dim).subarray(0, dim);
    const tokens = [...new Array(lengths[request]).keys()];
    const scores = tokens.map(token => scale * q.reduce((sum, value, d) => sum + value * keys[at(token) + d], 0));
    const top = Math.max(...scores), weights = scores.map(score => Math.exp(score - top));
    const total = weights.reduce((sum, weight) => sum + weight);
    return Array.from(q, (_, d) => tokens.reduce((sum, token) => sum + weights[token] * values[at(token) + d], 0) / total);
}

// The same numbers in each run.
let state = 42;
const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 31 - 1;
const make = (n, factor = 1) => Float32Array.from({length: n}, () => factor * random());

const [query, keys, values] = [make(lengths.length * heads * dim, 4), make(nBlocks * blockSize * kvHeads * dim), make(nBlocks * blockSize * kvHeads * dim)];
const out = new Float32Array(query.length).fill(NaN); // which no reference is
// The blocks of a request lie anywhere in the caches: here from the last one down.
let free = nBlocks;
const tables = lengths.map(length => Array.from({length: blocksOf(length)}, () => --free));

// Before the run, of what it is given.
const expected = lengths.flatMap((_, request) => [...new Array(heads).keys()].flatMap(
    head => expectedOf(query, keys, values, request, head, tables[request])));

const passed = await new Pto.Worker({platform: 'a2a3sim'}).use(async chip => {
    await chip.run_async(graph, query, keys, values, out);

    const error = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - out[i])), 0);
    const isRight = error < 1e-5; // false of what is no number
    print(`${lengths.length} requests, ${heads} heads, ${chip.statistics.tasks} tasks, greatest error ${error.toExponential(1)}: ${isRight ? 'PASS' : 'FAIL'}`);
    return isRight;
});
System.exit(passed ? 0 : 1);
