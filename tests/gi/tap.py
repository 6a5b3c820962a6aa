# tap.py: how does unittest tell Meson what it found?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import signal
import sys
import unittest

SHORT = 4  # with PTO_TEST_SHORT each of so many tests runs


def tests(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from tests(part)
        else:
            yield part


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count = 0

    def tell(self, word, test, note=""):
        self.count += 1
        print(f"{word} {self.count} {test.id()}{note}", flush=True)

    def addSuccess(self, test):
        self.tell("ok", test)

    def addSkip(self, test, reason):
        self.tell("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell("not ok", test)
        for line in self.failures[-1][1].splitlines():
            print("#", line)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.tell("not ok", subtest)
            for line in self._exc_info_to_string(err, test).splitlines():
                print("#", line)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell("not ok", test)
        for line in self.errors[-1][1].splitlines():
            print("#", line)


def main(module="__main__"):
    # A shell ignores them for what it starts in the background, and that is handed on: tests that send
    # them would wait for ever.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    # Where everything takes long, a part of it does: each program is run without that as well.
    if "PTO_TEST_SHORT" in os.environ:
        suite = unittest.TestSuite(list(tests(suite))[::SHORT])
    result = TapResult()
    print(f"1..{suite.countTestCases()}", flush=True)
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
