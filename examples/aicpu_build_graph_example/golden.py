# golden.py: what do tasks that are added by hand get, and what must come out? As where they are submitted.
#
# SPDX-License-Identifier: LGPL-2.1-or-later

import importlib.util
import os

_SIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "host_build_graph_sim_example", "golden.py")
_spec = importlib.util.spec_from_file_location("host_build_graph_sim_golden", _SIM)
_golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_golden)

__outputs__ = _golden.__outputs__
RTOL, ATOL = _golden.RTOL, _golden.ATOL
generate_inputs = _golden.generate_inputs
compute_golden = _golden.compute_golden
