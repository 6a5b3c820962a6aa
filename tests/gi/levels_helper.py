# levels_helper.py: what do children import by path?
# SPDX-License-Identifier: LGPL-2.1-or-later


def add_seven(args):
    args[0][0] += 7


def fan_out(orch, args, config):
    """An orchestration that is imported: every SUB function of its worker's program is there, too."""
    raise LookupError("nothing to fan out to")


class Refused(Exception):
    """Its constructor wants something else than its text."""
    def __init__(self, count):
        super().__init__(f"refused {count} times")
