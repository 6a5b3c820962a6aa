# kernel_config.py: which kernels and which orchestration compute F = exp(sqrt(log A) W1 + sqrt(log A) W2)?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

KERNELS = [
    {"func_id": 0, "name": "LOG", "source": "aiv/map.cpp", "core_type": "aiv", "flags": ["-DFUNCTION=std::log"]},
    {"func_id": 1, "name": "SQRT", "source": "aiv/map.cpp", "core_type": "aiv", "flags": ["-DFUNCTION=std::sqrt"]},
    {"func_id": 2, "name": "MATMUL", "source": "aic/matmul.cpp", "core_type": "aic"},
    {"func_id": 3, "name": "ADD", "source": "aiv/add.cpp", "core_type": "aiv"},
    {"func_id": 4, "name": "EXP", "source": "aiv/map.cpp", "core_type": "aiv", "flags": ["-DFUNCTION=std::exp"]},
]

ORCHESTRATION = {
    "source": "orchestration/diamond_orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}

RUNTIME_CONFIG = {
    "runtime": "tensormap_and_ringbuffer",
    "aicpu_thread_num": 4,
    "block_dim": 24,
}
