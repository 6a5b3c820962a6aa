# runtime_builder.py: the module of seed 004 that has RuntimeBuilder.
# SPDX-License-Identifier: LGPL-2.1-or-later
from simpler.task_interface import RuntimeBuilder

__all__ = ["RuntimeBuilder"]
