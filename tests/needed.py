# needed.py: what has to be built before some suites can run?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: python3 tests/needed.py BUILD [--suite NAME | --no-suite NAME] ...
#
# Prints the targets for ninja. Newer versions of `meson test` build everything, even for one suite.
import argparse
import json
import os


def read(build, what):
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    options = parser.parse_args()
    files = {target["id"]: target["filename"] for target in read(options.build, "targets")}
    needed = set()
    for test in read(options.build, "tests"):
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        if (not options.suite or suites & set(options.suite)) and not suites & set(options.no_suite):
            for target in test["depends"]:
                needed.update(os.path.relpath(file, os.path.abspath(options.build)) for file in files[target])
    print("\n".join(sorted(needed)))


main()
