# kernel_config.py: which kernels and which orchestration make f = (a + b + 1)(a + b + 2)?
#
# SPDX-License-Identifier: LGPL-2.1-or-later

KERNELS = [
    {"func_id": 0, "source": "../../seed-layout/vector/kernels/aiv/kernel_add.cpp", "core_type": "aiv"},
    {"func_id": 1, "source": "../../seed-layout/vector/kernels/aiv/kernel_add_scalar.cpp", "core_type": "aiv"},
    {"func_id": 2, "source": "../../seed-layout/vector/kernels/aiv/kernel_mul.cpp", "core_type": "aiv"},
]

ORCHESTRATION = {
    "source": "orchestration/example_orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}

RUNTIME_CONFIG = {"runtime": "host_build_graph"}
