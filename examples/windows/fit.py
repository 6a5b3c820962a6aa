#!/usr/bin/env python3
# fit.py: how well does the virtual clock tell windows that were measured on a chip?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""fit.py [PTO]: fits one parameter on one window, or two on two, and predicts the others (doc/time.md).

Runs are of the case "clock" of each window, on det: twice the same time, to the ns.
"""
import argparse
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# us; where they are from is in doc/time.md.
MEASURED = {"bgemm": 724.9, "alternating": 773.5, "attention": 1088.8}
KERNELS = ("gemm", "matmul", "add", "QK", "SF", "PV", "UP")
# What is there before anything is fitted: the platform's own cost of a submit, and 7 us of latency that was published of
# a task with three times 6 tiles of 64 x 64 floats, less the 0.95 us that are the platform's.
SUBMIT_NS = 430
NS_PER_BYTE = round((7000 - 950) / (3 * 6 * 64 * 64 * 4), 6)
# Which parameter each window tells something about: the one that it is bound by.
TELLS = {"bgemm": "submit", "alternating": "submit", "attention": "byte"}


class Model:
    def __init__(self, pto, cases="clock"):
        self.pto, self.cases = pto, cases
        self.scratch = tempfile.TemporaryDirectory()
        self.environment = dict(os.environ, XDG_CACHE_HOME=self.scratch.name)
        self.known = {}

    def call(self, *words):
        done = subprocess.run([self.pto, *words], env=self.environment, stdout=subprocess.PIPE, check=True, text=True)
        return done.stdout

    def window(self, name, submit=SUBMIT_NS, byte=NS_PER_BYTE):
        """us that the window takes when a submit costs so much (ns), and a byte of a kernel's tensors so much (ns)."""
        key = name, round(submit), round(byte, 6)
        if key not in self.known:
            platform = os.path.join(self.scratch.name, "chip.ini")
            table = os.path.join(self.scratch.name, "times.csv")
            with open(platform, "w", encoding="utf-8") as file:
                file.write(f"[platform]\nlike=a2a3sim\n[costs]\nsubmit={key[1]}\n")
            with open(table, "w", encoding="utf-8") as file:
                file.write("kernel,bytes,ns\n")
                for kernel in KERNELS:  # on a line from nothing at no bytes: two points are enough
                    for size in 1_000_000, 2_000_000:
                        file.write(f"{kernel},{size},{key[2] * size:.6f}\n")
            self.call("calibrate", "--forget-all", table)
            result = self.call("run", os.path.join(HERE, name), "--case", self.cases, "--backend", "det", "--platform",
                               platform, "--costs", "chip", "--json")
            self.known[key] = json.loads(result)["virtual_ns"] / 1000
        return self.known[key]

    def fit(self, name, **others):
        """The parameter that the window tells something about, so that it takes what was measured."""
        what = TELLS[name]
        digits = None if what == "submit" else 6
        before, value = (SUBMIT_NS, SUBMIT_NS + 20) if what == "submit" else (NS_PER_BYTE, round(NS_PER_BYTE * 0.9, 6))
        for _ in range(10):  # what a window takes is nearly a line
            short, us = (self.window(name, **{what: x}, **others) for x in (before, value))
            if us == short:
                break
            before, value = value, round(value + (MEASURED[name] - us) * (value - before) / (us - short), digits)
        return {what: value}

    def errors(self, **parameters):
        return {name: self.window(name, **parameters) / MEASURED[name] - 1 for name in MEASURED}


def fits(model):
    """(fitted on, parameters): nothing, each window, each two."""
    yield (), {}
    single = {name: model.fit(name) for name in MEASURED}
    for name, value in single.items():
        yield (name,), value
    for left_out in MEASURED:
        names = tuple(name for name in MEASURED if name != left_out)
        submits = [single[name]["submit"] for name in names if TELLS[name] == "submit"]
        parameters = {"submit": round(sum(submits) / len(submits))}
        for name in names:
            if TELLS[name] == "byte":
                parameters.update(model.fit(name, **parameters))
        yield names, parameters


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pto", nargs="?", default="pto", help="the program (default: pto)")
    parser.add_argument("--markdown", action="store_true", help="print the table of doc/time.md")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    model = Model(options.pto)
    rows = []
    for names, parameters in fits(model):
        rows.append({"fitted_on": list(names), "parameters": parameters,
                     "us": {name: model.window(name, **parameters) for name in MEASURED},
                     "error": model.errors(**parameters)})
    if options.markdown:
        for row in rows:
            cells = "".join(
                f" {row['us'][name]:.1f} | " + ("({:+.1f} %)" if name in row["fitted_on"] else "{:+.1f} %").format(
                    (round(row["us"][name], 1) / MEASURED[name] - 1) * 100) + " |" for name in MEASURED)
            print(f"| {', '.join(row['fitted_on']) or 'nothing'} | {row['parameters'].get('submit', SUBMIT_NS)} | "
                  f"{row['parameters'].get('byte', NS_PER_BYTE) * 1000:.3f} |{cells}")
        return
    if options.json:
        print(json.dumps({"measured_us": MEASURED, "start": {"submit": SUBMIT_NS, "byte": NS_PER_BYTE}, "fits": rows}))
        return
    print(f"{'fitted on':24} {'submit ns':>9} {'ps/byte':>7}" + "".join(f" {name:>20}" for name in MEASURED))
    for row in rows:
        byte = row["parameters"].get("byte", NS_PER_BYTE) * 1000
        cells = "".join(f" {row['us'][name]:9.1f} us {row['error'][name] * 100:+6.1f} %{'*' if name in row['fitted_on'] else ' '}"
                        for name in MEASURED)
        print(f"{', '.join(row['fitted_on']) or 'nothing':24} {row['parameters'].get('submit', SUBMIT_NS):9} {byte:7.3f}{cells}")


if __name__ == "__main__":
    main()
