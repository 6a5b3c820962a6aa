# trace_truth.py: what do the records of a trace say, worked out the slow and plain way?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nothing here is taken from the library: records in, facts out."""
import hashlib

SUBMIT, DEP, READY, DISPATCH, ACK, RUN, COMPLETE, RETIRE, SCOPE, STALL = range(1, 11)
RAW, WAW, WAR, UNSURE, EXPLICIT = 1, 2, 4, 8, 16
NO_TASK = 2 ** 64 - 1
N_RINGS = 4
UNKNOWN = 2 ** 32 - 3  # the kernel of a task whose submit was not recorded
THIN = "\u2009"


class Case:
    """Records by hand, or of a run. A record is (time, task, kind, detail, extra)."""

    def __init__(self, topology, buffers, kernels, title="", dropped=None):
        self.schedulers, self.clusters, self.aic, self.aiv, self.virtual = topology
        self.buffers = buffers
        self.kernels = kernels
        self.title = title
        self.dropped = dropped or [0] * len(buffers)
        self.n_cores = self.clusters * (self.aic + self.aiv)

    def lines(self):
        def escape(text):
            return "".join("\\%03o" % byte if byte < 33 or byte > 126 or byte == 92 else chr(byte)
                           for byte in text.encode())
        yield "topology %d %d %d %d %d" % (self.schedulers, self.clusters, self.aic, self.aiv,
                                           self.virtual)
        yield "title " + escape(self.title)
        for name in self.kernels:
            yield "kernel " + escape(name or "")
        for records, dropped in zip(self.buffers, self.dropped):
            yield "buffer %d" % dropped
            for record in records:
                yield "record %d %d %d %d %d" % record
        yield "end"


class Task:
    def __init__(self, number):
        self.id = number
        self.submit = self.submit_end = self.ready = self.dispatch = self.ack = None
        self.start = self.end = self.complete = self.retire = None
        self.kernel = UNKNOWN
        self.core_type = self.core = self.scheduler = None
        self.priority = 0
        self.deps = {}  # producer's id -> kinds, in order
        self.failed = self.critical = False
        self.last = None  # whose end made it ready: its id


class Truth:
    def __init__(self, case):
        self.case = case
        records = [(b, r) for b, buffer in enumerate(case.buffers) for r in buffer]
        self.recorded = len(records)
        self.dropped = sum(case.dropped)
        self.first = min((r[0] for _, r in records), default=0)
        self.last = max((max(r[0], r[4]) if r[2] in (RUN, STALL) else r[0] for _, r in records),
                        default=self.first) - self.first
        self.tasks = {}
        self.stalls = []
        self.read(records)
        self.ran = [t for t in self.tasks.values() if t.core is not None]
        self.elapsed = max((t.end for t in self.ran), default=0) or self.last
        self.runs = [sorted((t for t in self.ran if t.core == c),
                            key=lambda t: (t.start, t.end, t.id)) for c in range(case.n_cores)]
        self.busy = [sum(t.end - t.start for t in runs) for runs in self.runs]
        self.edges = sum(len(t.deps) for t in self.tasks.values())
        self.failed = sum(t.failed for t in self.tasks.values())
        self.scopes = self.read_scopes()
        self.stalls.sort(key=lambda s: (s[0], -s[1], s[2]))
        self.path = self.find_path()

    def read(self, records):
        for b, (time, number, kind, detail, extra) in records:
            now = time - self.first
            if kind == STALL:
                self.stalls.append((now, max(extra, time) - self.first, detail))
                continue
            if kind == SCOPE or not SUBMIT <= kind <= STALL:
                continue
            task = self.tasks.setdefault(number, Task(number))
            if kind == SUBMIT:
                task.submit = task.submit_end = now
                task.kernel = detail
                task.core_type = extra & 0xff
                task.priority = extra >> 28 & 0xf
            elif kind == DEP:
                task.deps[extra] = task.deps.get(extra, 0) | detail
                if task.submit is None or now > task.submit_end:
                    task.submit_end = now
            elif kind == READY:
                task.ready = now
                if detail == 1:
                    task.last = extra
            elif kind == DISPATCH:
                task.dispatch = now
                if 1 <= b <= self.case.schedulers:
                    task.scheduler = b - 1
            elif kind == ACK:
                task.ack = now
            elif kind == RUN and detail < self.case.n_cores and extra >= time:
                task.core, task.start, task.end = detail, now, extra - self.first
            elif kind == COMPLETE:
                task.complete = now
                task.failed = task.failed or extra == 1
            elif kind == RETIRE:
                task.retire = now
                for i in range(1, detail + 1):
                    if number + i in self.tasks:
                        self.tasks[number + i].retire = now

    def read_scopes(self):
        scopes, opened = [], []
        for time, _, kind, detail, extra in (self.case.buffers or [[]])[0]:
            if kind == SCOPE and extra & 1:
                opened.append(len(scopes))
                scopes.append([time - self.first, self.last, detail])
            elif kind == SCOPE and opened:
                scopes[opened.pop()][1] = time - self.first
        self.open_at_end = set(opened)
        self.scope_list = [tuple(s) for s in scopes]
        return sorted(self.scope_list, key=lambda s: s[0])

    def stand_in(self, task, memo):
        """Who has run where that one is named: of one that ran nothing its producers' last."""
        if task.end is not None:
            return task
        if task.id not in memo:
            memo[task.id] = None
            ran = [self.stand_in(self.tasks[p], memo) for p in task.deps if p in self.tasks]
            memo[task.id] = max((p for p in ran if p is not None), key=lambda p: p.end, default=None)
        return memo[task.id]

    def find_path(self):
        """Back from the task that ended last (of several the first submitted) to what it waited for:
        the producer that ended last, or the task before it on its core when that ended later than
        every producer and not before the task was ready. Up to a task that was submitted after all
        of that."""
        path, memo = [], {}
        task = max(self.ran, key=lambda t: t.end, default=None) if self.ran else None
        while task is not None:
            task.critical = True
            path.insert(0, task)
            causes = [self.stand_in(self.tasks[p], memo) for p in task.deps if p in self.tasks]
            causes = [p for p in causes
                      if p is not None and p.end <= task.start and not p.critical]
            runs = self.runs[task.core]
            position = runs.index(task)
            cause = max(causes, key=lambda p: p.end, default=None)
            if position > 0:
                before = runs[position - 1]
                known = task.ready if task.ready is not None else task.submit
                if (before.end <= task.start and not before.critical
                        and (known is None or before.end >= known)
                        and (cause is None or before.end > cause.end)):
                    cause = before
            if cause is not None and task.submit is not None and cause.end < task.submit:
                cause = None
            task = cause
        return path

    # --- curves: (time, value) from that time on, none twice ---

    @staticmethod
    def curve(intervals):
        """Of intervals [from, to): how many hold."""
        times = sorted({t for pair in intervals for t in pair if t is not None})
        change = {t: 0 for t in times}
        for begin, end in intervals:
            change[begin] += 1
            if end is not None:
                change[end] -= 1
        steps, value = [], 0
        for t in times:
            value += change[t]
            if not steps or steps[-1][1] != value:
                steps.append((t, value))
        return steps

    def ready_curve(self, core_type):
        intervals = []
        for t in self.tasks.values():
            taken = min((x for x in (t.dispatch, t.start) if x is not None), default=None)
            if t.core_type == core_type and t.ready is not None and taken is not None:
                intervals.append((min(t.ready, taken), taken))
        return self.curve(intervals)

    def live_curve(self, ring):
        return self.curve([(t.submit, None if t.retire is None else max(t.retire, t.submit))
                           for t in self.tasks.values()
                           if t.submit is not None and t.id >> 32 == ring])

    def scope_curve(self):
        return self.curve([(s[0], None if i in self.open_at_end else s[1])
                           for i, s in enumerate(self.scope_list)])

    @property
    def rings(self):
        return max((t.id >> 32 for t in self.tasks.values()
                    if t.submit is not None and t.id >> 32 < N_RINGS), default=-1) + 1

    # --- names ---

    def locate(self, core):
        cluster, rest = divmod(core, self.case.aic + self.case.aiv)
        return cluster, int(rest >= self.case.aic)

    def core_name(self, core):
        kind = self.locate(core)[1]
        return ("AIC", "AIV")[kind] + str(
            sum(1 for c in range(core) if self.locate(c)[1] == kind))

    def kernel_name(self, kernel):
        if kernel < len(self.case.kernels):
            return self.case.kernels[kernel] or "kernel %d" % kernel
        named = {2 ** 32 - 1: "no kernel", 2 ** 32 - 2: "alloc", UNKNOWN: "unknown kernel"}
        return named[kernel] if kernel >= 2 ** 31 else "kernel %d" % kernel

    def type_cores(self, core_type):
        return [c for c in range(self.case.n_cores) if self.locate(c)[1] == core_type]

    def type_utilization(self, core_type):
        cores = self.type_cores(core_type)
        if not cores or not self.elapsed:
            return 0.0
        return float(sum(self.busy[c] for c in cores)) / len(cores) / self.elapsed

    def utilization(self, core):
        return self.busy[core] / self.elapsed if self.elapsed else 0.0

    def sha256(self, counter_hz=50000000):
        """Everything recorded, times from the first record."""
        case, parts = self.case, [b"pto-trace-2"]

        def add(*values):
            parts.extend((v % 2 ** 64).to_bytes(8, "little") for v in values)
        add(case.schedulers, case.n_cores, case.clusters, case.aic, case.aiv, case.virtual,
            counter_hz, len(case.kernels))
        for k in range(len(case.kernels)):
            parts.append(self.kernel_name(k).encode() + b"\0")
        add(len(case.buffers))
        for records, dropped in zip(case.buffers, case.dropped):
            add(dropped, len(records))
            for time, task, kind, detail, extra in records:
                if kind in (RUN, STALL):
                    extra -= self.first
                add(time - self.first, task, kind << 32 | detail, extra)
        return hashlib.sha256(b"".join(parts)).hexdigest()


# --- how numbers are written ---

def task_label(number):
    """As pictures, reports and exports name it, and `pto trace FILE why` takes it."""
    ring, local = number >> 32, number & 0xffffffff
    return "%d:%d" % (ring, local) if ring else str(local)


def us(ns):
    return "%d.%03d" % divmod(ns, 1000)


def grouped(value):
    return "{:,}".format(value).replace(",", THIN)


def four_digits(ns):
    """Microseconds with as many decimals as make four digits, rounded half up."""
    decimals = 3 if ns < 10000 else 2 if ns < 100000 else 1 if ns < 1000000 else 0
    unit = 10 ** (3 - decimals)
    whole, part = divmod((ns + unit // 2) // unit * unit, 1000)
    return grouped(whole) + ("." + ("%03d" % part)[:decimals] if decimals else "") + " µs"


def stall_name(what):
    names = ["task ring", "heap ring", "dependency pool", "tensor map"]
    if what >> 8 == 4:
        return "a free cluster"
    if what >> 8 == 5:
        return "an element"
    return "%s %d" % (names[what >> 8] if what >> 8 < 4 else "ring", what & 0xff)


def hazard_name(kinds):
    names = [name for bit, name in ((RAW, "RAW"), (WAW, "WAW"), (WAR, "WAR"), (EXPLICIT, "explicit"))
             if kinds & bit]
    return "+".join(names) + ("?" if kinds & UNSURE else "")


def plural(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def summary(truth):
    case, lines = truth.case, []
    if case.title:
        lines.append(case.title)
    lines.append("%s, %s, %s us on the %s clock"
                 % (plural(len(truth.tasks), "task"), plural(truth.edges, "edge"), us(truth.elapsed),
                    "virtual" if case.virtual else "wall"))
    for core_type, name in enumerate(("AIC", "AIV")):
        n = len(truth.type_cores(core_type))
        if n:
            lines.append("%d %s busy %.0f %%"
                         % (n, name, 100.0 * truth.type_utilization(core_type)))
    if truth.path:
        begin = truth.path[0].submit
        lines.append("critical path: %s, then %s in %s us, of which %s us in "
                     "kernels" % ("submitted at %s us" % us(begin) if begin is not None
                                  else "its begin was not recorded", plural(len(truth.path), "task"),
                                  us(truth.path[-1].end - truth.path[0].start),
                                  us(sum(t.end - t.start for t in truth.path))))
    if truth.failed:
        lines.append("%s failed" % plural(truth.failed, "task"))
    totals = {}
    for t in truth.ran:
        runs, busy = totals.get(t.kernel, (0, 0))
        totals[t.kernel] = runs + 1, busy + t.end - t.start
    everything = sum(truth.busy)
    widest = max([16] + [len(truth.kernel_name(kernel)) for kernel in totals])
    for kernel, (runs, busy) in sorted(totals.items(), key=lambda item: (-item[1][1], item[0])):
        lines.append("  %s %10d run%s %12.3f us each %5.0f %%"
                     % (truth.kernel_name(kernel).ljust(widest), runs, " " if runs == 1 else "s", busy / runs / 1000.0,
                        100.0 * busy / everything if everything else 0.0))
    if truth.stalls:
        lines.append("the submitter waited for a ring %s, %s us in all"
                     % (plural(len(truth.stalls), "time"), us(sum(s[1] - s[0] for s in truth.stalls))))
    if truth.dropped:
        lines.append("%d records were dropped: set trace-records to more than they are"
                     % truth.dropped)
    return "".join(line + "\n" for line in lines)
