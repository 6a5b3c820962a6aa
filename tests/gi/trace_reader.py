# trace_reader.py: what is in the JSON of a trace?
# SPDX-License-Identifier: LGPL-2.1-or-later
import collections
import json

EPS_US = 0.0011  # times are rounded to ns

Slice = collections.namedtuple("Slice", "row start end name args")


class Json:
    """What ui.perfetto.dev would show: slices by process and thread."""
    def __init__(self, test, trace):
        self.root = json.loads(trace.to_json())
        self.names, self.sort = {}, {}
        self.slices = collections.defaultdict(list)  # (process, thread) -> slices, by start
        self.flows = {}
        events = self.root["traceEvents"]
        for event in events:
            if event["ph"] == "M" and event["name"].endswith("_name"):
                key = (event["pid"], event["tid"] if event["name"] == "thread_name" else 0)
                test.assertNotIn(key, self.names, "each row is named once")
                self.names[key] = event["args"]["name"]
        tids = [tid for _, tid in self.names if tid != 0]
        test.assertEqual(len(tids), len(set(tids)), "a thread's number is its own")
        processes = [name for (_, tid), name in self.names.items() if tid == 0]
        test.assertEqual(len(processes), len(set(processes)), "a process's name is its own")
        for event in events:
            if event["ph"] == "X":
                row = (self.names[event["pid"], 0], self.names[event["pid"], event["tid"]])
                self.slices[row].append(Slice(row, event["ts"], event["ts"] + event["dur"], event["name"],
                                              event["args"]))
            elif event["ph"] in "sf":
                self.flows.setdefault(event["id"], []).append(event)
        for slices in self.slices.values():
            slices.sort(key=lambda s: (s.start, s.end))

    def row(self, process, thread):
        return self.slices.get((process, thread), [])

    def below(self, process):
        """Slices of kernels on the cores of a chip."""
        return sorted((s for (name, thread), slices in self.slices.items()
                       if name.startswith(process + " cluster ") for s in slices), key=lambda s: s.start)


def check_moved(test, host):
    """What travelled in the run is what the statistics say, in every answer of its trace; gives that: sent, received, saved."""
    trace, run = host.trace, host.statistics
    of = [[f.get_bytes_sent(), f.get_bytes_received(), f.get_bytes_saved()] for f in (run, trace)]
    test.assertEqual(trace.get_dropped(), 0)
    test.assertEqual(*of)
    own = [core for core in trace.list_cores() if core.get_path() == trace.list_cores()[0].get_path()]
    test.assertEqual([sum(core.get_bytes_sent() for core in own), sum(core.get_bytes_received() for core in own),
                      sum(core.get_bytes_saved() for core in own)], of[0])
    shown = Json(test, trace)
    host_name, sums = own[0].get_path(), [0, 0, 0]
    for core in own:
        runs = {task.args["task"]: task for task in shown.row(host_name, core.get_name())}
        for one in shown.row(host_name, core.get_name() + ": tensors"):
            sums[["sent", "received"].index(one.name)] += one.args["bytes"]
            sums[2] += one.args.get("saved", 0)
            test.assertGreater(one.args["bytes"] + one.args.get("saved", 0), 0)
            if one.args.get("task") in runs and len(runs) == len(shown.row(host_name, core.get_name())):
                task = runs[one.args["task"]]
                test.assertLessEqual(one.start, one.end)
                if one.name == "sent":
                    test.assertLessEqual(one.end, task.start + EPS_US)
                else:
                    test.assertGreaterEqual(one.start, task.end - EPS_US)
    test.assertEqual(sums, of[0])
    return tuple(of[0])
