# __init__.py: how does a program find the library that pip has installed?
#
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Beside this file are the library, its introspection data and the headers for kernels; where others are installed, too, these
# come first. From here on "from gi.repository import Pto" finds them as well.
"""Task graphs as an Ascend NPU runs them, without the NPU: from libpto import Pto."""
import os

import gi

gi.require_version("GIRepository", "2.0")
from gi.repository import GIRepository  # noqa: E402

_here = os.path.dirname(os.path.abspath(__file__))
GIRepository.Repository.prepend_search_path(_here)
GIRepository.Repository.prepend_library_path(_here)
gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402, now it is found

__all__ = ["Pto"]
