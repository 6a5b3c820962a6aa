# kernel_config.py: which kernels and which orchestration make f = (a + b + 1)(a + b + 2), built by hand?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

_VECTOR = "../../seed-layout/vector/kernels/aiv/"

KERNELS = [
    {"func_id": 0, "source": _VECTOR + "kernel_add.cpp", "core_type": "aiv"},
    {"func_id": 1, "source": _VECTOR + "kernel_add_scalar.cpp", "core_type": "aiv"},
    {"func_id": 2, "source": _VECTOR + "kernel_mul.cpp", "core_type": "aiv"},
]

ORCHESTRATION = {
    "source": "orchestration/example_orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}

RUNTIME_CONFIG = {
    "runtime": "aicpu_build_graph",
    "build_mode": 1,  # 0: nothing runs before the graph is complete
}
