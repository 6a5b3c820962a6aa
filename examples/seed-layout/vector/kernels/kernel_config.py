# kernel_config.py: which kernels and which orchestration make the vector example?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

KERNELS = [
    {"func_id": 0, "name": "ADD", "source": "aiv/kernel_add.cpp", "core_type": "aiv"},
    {"func_id": 1, "name": "ADD_SCALAR", "source": "aiv/kernel_add_scalar.cpp", "core_type": "aiv"},
    {"func_id": 2, "name": "MUL", "source": "aiv/kernel_mul.cpp", "core_type": "aiv"},
]

ORCHESTRATION = {
    "source": "orchestration/vector_orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}

RUNTIME_CONFIG = {
    "runtime": "tensormap_and_ringbuffer",
    "aicpu_thread_num": 4,
    "block_dim": 24,
}
