# kernel_config.py: which kernels and which orchestration are for the chip itself? Those of its simulation.
#
# SPDX-License-Identifier: LGPL-2.1-or-later

_VECTOR = "../../seed-layout/vector/kernels/aiv/"

KERNELS = [
    {"func_id": 0, "source": _VECTOR + "kernel_add.cpp", "core_type": "aiv"},
    {"func_id": 1, "source": _VECTOR + "kernel_add_scalar.cpp", "core_type": "aiv"},
    {"func_id": 2, "source": _VECTOR + "kernel_mul.cpp", "core_type": "aiv"},
]

ORCHESTRATION = {
    "source": "../../host_build_graph_sim_example/kernels/orchestration/example_orch.cpp",
    "function_name": "aicpu_orchestration_entry",
}

RUNTIME_CONFIG = {"runtime": "host_build_graph"}
