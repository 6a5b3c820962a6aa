// PtoChecks.js: which values does JavaScript give the library?
//
// SPDX-License-Identifier: LGPL-2.1-or-later
//
// GJS takes 0 for what is no number, and only a Uint8Array for bytes. Which argument is what is written down here, as GJS does not say it;
// a test compares it with the introspection data.
const {GLib} = imports.gi;
const {_, shown} = imports.overrides.PtoText;

// Which arguments are integers, and what they are called.
var integers = {
    'Buffer.copy_to': [[1, 'offset'], [2, 'to_offset'], [3, 'size']],
    'Buffer.export': [[0, 'offset'], [1, 'size']],
    'Buffer.new': [[0, 'size']],
    'Buffer.read': [[0, 'offset'], [1, 'size']],
    'Buffer.write': [[0, 'offset']],
    'CallConfig.set_aicpu_thread_num': [[0, 'value']],
    'CallConfig.set_block_dim': [[0, 'value']],
    'CallConfig.set_enable_access_check': [[0, 'value']],
    'CallConfig.set_enable_dep_gen': [[0, 'value']],
    'CallConfig.set_enable_dump_tensor': [[0, 'value']],
    'CallConfig.set_enable_l2_swimlane': [[0, 'value']],
    'CallConfig.set_enable_pmu': [[0, 'value']],
    'CallConfig.set_enable_scope_stats': [[0, 'value']],
    'ChipOrchestration.add_kernel': [[0, 'func_id']],
    'ChipOrchestration.get_kernel': [[0, 'func_id']],
    'ChipOrchestration.get_kernel_name': [[0, 'func_id']],
    'ClusterFile.dup_address': [[0, 'place']],
    'ClusterFile.dup_command': [[0, 'place']],
    'ClusterFile.dup_job': [[0, 'place']],
    'ClusterFile.dup_name': [[0, 'place']],
    'ClusterFile.get_n_workers': [[0, 'place']],
    'Costs.add_time': [[2, 'bytes']],
    'Exception.get_member': [[0, 'index']],
    'Graph.add_successor': [[0, 'task'], [1, 'successor']],
    'Graph.bind_scalar': [[0, 'task'], [1, 'index'], [2, 'argument']],
    'Graph.dup_argument_name': [[0, 'argument']],
    'Graph.set_argument_name': [[0, 'argument']],
    'Graph.set_place': [[1, 'line']],
    'Graph.set_priority': [[0, 'priority']],
    'Kernel.set_n_args': [[0, 'n_args']],
    'Orchestrator.broadcast': [[1, 'root']],
    'Orchestrator.dup_cluster_cores': [[0, 'cluster']],
    'Orchestrator.free_cluster': [[0, 'cluster']],
    'Orchestrator.make_tensor_at': [[0, 'worker']],
    'Orchestrator.set_place': [[1, 'line']],
    'Orchestrator.set_priority': [[0, 'priority']],
    'Orchestrator.submit_next_level': [[3, 'worker']],
    'Orchestrator.submit_sub': [[2, 'worker']],
    'RunStatistics.get_heap_peak': [[0, 'ring']],
    'RunStatistics.get_last_task_alive': [[0, 'ring']],
    'RunStatistics.get_ring_tasks': [[0, 'ring']],
    'TaskArgs.add_after': [[0, 'task']],
    'TaskArgs.add_scalar': [[0, 'value']],
    'TaskArgs.add_scalar_signed': [[0, 'value']],
    'TaskArgs.get_direction': [[0, 'index']],
    'TaskArgs.get_scalar': [[0, 'index']],
    'TaskArgs.get_scalar_double': [[0, 'index']],
    'TaskArgs.get_scalar_kind': [[0, 'index']],
    'TaskArgs.get_scalar_value': [[0, 'index']],
    'TaskArgs.get_tensor': [[0, 'index']],
    'TaskArgs.set_block_dim': [[0, 'block_dim']],
    'TaskArgs.set_cluster': [[0, 'cluster']],
    'Tensor.as_strided': [[2, 'offset']],
    'Tensor.new_external': [[0, 'address']],
    'Tensor.new_for_buffer': [[1, 'offset']],
    'Tensor.new_for_bytes': [[1, 'offset']],
    'Tensor.new_for_object': [[0, 'address']],
    'Tensor.transpose': [[0, 'x'], [1, 'y']],
    'Trace.dup_core_name': [[0, 'core']],
    'Trace.explain_task': [[0, 'id']],
    'Trace.explain_task_json': [[0, 'id']],
    'Trace.get_core_utilization': [[0, 'core']],
    'Worker.alloc_buffer': [[0, 'size']],
    'Worker.ask_process': [[0, 'process']],
    'Worker.copy_from': [[0, 'address'], [1, 'size']],
    'Worker.copy_from_address': [[0, 'host'], [1, 'address'], [2, 'size']],
    'Worker.copy_to': [[0, 'address']],
    'Worker.copy_to_address': [[0, 'address'], [1, 'host'], [2, 'size']],
    'Worker.dup_last_writer': [[0, 'address']],
    'Worker.free': [[0, 'address']],
    'Worker.get_child': [[0, 'id']],
    'Worker.malloc': [[0, 'size']],
    'Worker.new': [[0, 'level']],
    'Worker.new_host': [[0, 'level'], [1, 'n_devices'], [2, 'n_sub_workers']],
    'Worker.set_progress_interval': [[0, 'interval']],
};

// Which are bytes.
var bytes = {
    'Buffer.write': [[1, 'bytes']],
    'Exception.new_with_contents': [[4, 'contents']],
    'TaskArgs.new_from_blob': [[0, 'blob']],
    'Tensor.new_for_bytes': [[0, 'bytes']],
    'Worker.copy_to': [[1, 'bytes']],
};

// A BigInt as a Number where that is the same: GJS makes one of 32 bits of no other.
function integerOf(where, value, isSwitch = false) {
    if (Number.isInteger(value) || (isSwitch && typeof value === 'boolean'))
        return value;
    if (typeof value !== 'bigint')
        throw new TypeError(_('%s: %s is not an integer', where, shown(value)));
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

// The id of a worker that is named by itself, and is below; what is none as it is.
function idBelow(where, above, worker) {
    if (!(worker instanceof imports.gi.Pto.Worker))
        return worker;
    const below = above.get_children();
    for (let i = 0; i < below.get_n_items(); i++) {
        if (below.get_item(i) === worker)
            return worker.get_id();
    }
    throw new TypeError(_('%s: %s is not below %s: name one that is', where, worker.dup_path(), above.dup_path()));
}

// Of an array the bytes of its elements; the same memory.
function bytesOf(where, value) {
    if (value instanceof Uint8Array || value instanceof GLib.Bytes || value === null || value === undefined) // GJS tells nothing by its name
        return value;
    if (ArrayBuffer.isView(value))
        return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof ArrayBuffer)
        return new Uint8Array(value);
    throw new TypeError(_('%s: %s is not bytes: an array such as a Float32Array, or a GLib.Bytes, is wanted', where, shown(value)));
}
