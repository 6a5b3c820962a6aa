# test_endings.py: does the program go on after a kernel that never returned?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import unittest

import gi

gi.require_version("Pto", "1")
from gi.repository import Pto  # noqa: E402

import tap  # noqa: E402

here = os.path.dirname(os.path.abspath(__file__))
churn = Pto.Callable.kernel(os.path.join(here, "churn.c"))
fill = Pto.Callable.kernel(os.path.join(here, "fill.c"))


class Endings(unittest.TestCase):
    def test_allocating(self):
        """It is ended between two calls of the allocator, which the program needs from then on."""
        for backend in ("par", "det", "threads"):
            with self.subTest(backend), Pto.Worker(platform="a2a3sim") as worker:
                worker.set_parameter("backend", backend)
                worker.set_parameter("timeout", "300")
                for _ in range(3):
                    with self.assertRaisesRegex(Pto.Error, r"\(churn\).*did not return") as caught:
                        worker.run(lambda orch: orch.submit(churn))
                    self.assertNotIn("not safe", caught.exception.message)
                    # Small blocks, large ones and mappings, and given back.
                    self.assertEqual(sum(len(bytes(1 << n)) for n in range(4, 24)), (1 << 24) - 16)
                board = Pto.Buffer.array(8)
                worker.run(lambda orch, x: orch.submit(fill, x.write_existing(), 0x40a00000), board)
                self.assertEqual(list(board), [5.0] * 8)


tap.main()
