# perfetto_reader.py: what does a Perfetto trace say, read by who wrote nothing of it?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The wire format of Protocol Buffers, and of Perfetto's messages the numbers that their .proto files give:
protos/perfetto/trace/trace_packet.proto, track_event/*.proto, interned_data.proto, clock_snapshot.proto."""
import collections

from trace_truth import stall_name, task_label

SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS = 1, 2
EXPLICIT = 3
UNIT_COUNT, UNIT_BYTES = 2, 3


class Message:
    """All fields of a message, by number; what lies in a field of bytes is read when it is asked for."""

    def __init__(self, data):
        self.fields = collections.defaultdict(list)
        at = 0
        while at < len(data):
            key, at = varint(data, at)
            number, kind = key >> 3, key & 7
            assert number > 0, "a field has a number"
            if kind == 0:
                value, at = varint(data, at)
            elif kind == 1:
                value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
            elif kind == 2:
                length, at = varint(data, at)
                value, at = data[at:at + length], at + length
            else:
                raise AssertionError(f"wire type {kind} of field {number}")
            assert at <= len(data), "cut off"
            self.fields[number].append((kind, value))

    def all(self, number, kind):
        for got, _ in self.fields.get(number, ()):
            assert got == kind, f"field {number} is of wire type {got}"
        return [value for _, value in self.fields.get(number, ())]

    def one(self, number, kind, default=None):
        values = self.all(number, kind)
        assert len(values) <= 1, f"field {number} is there {len(values)} times"
        return values[0] if values else default

    def uint(self, number, default=None):
        return self.one(number, 0, default)

    def text(self, number, default=None):
        value = self.one(number, 2)
        return default if value is None else value.decode()

    def message(self, number):
        value = self.one(number, 2)
        return None if value is None else Message(value)

    def messages(self, number):
        return [Message(value) for value in self.all(number, 2)]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            assert value < 2 ** 64
            return value, at


Slice = collections.namedtuple("Slice", "row start end name category args flows_out flows_in depth")
Instant = collections.namedtuple("Instant", "row time name category args")


class Trace:
    def __init__(self, data):
        packets = Message(data)
        assert set(packets.fields) == {1}, "a trace is packets"
        packets = packets.messages(1)
        self.read_names(packets[0])
        self.tracks, self.slices, self.instants = {}, [], []
        self.counters = collections.defaultdict(list)
        self.clocks = {}
        self.stacks = collections.defaultdict(list)
        self.last = 0
        self.n_begun = 0
        for packet in packets[1:]:
            assert packet.uint(10) == 1, "trusted_packet_sequence_id"
            if 60 in packet.fields:
                self.read_track(packet.message(60))
            elif 6 in packet.fields:
                self.clocks = {clock.uint(1): clock.uint(2) for clock in packet.message(6).messages(1)}
            else:
                self.read_event(packet)
        assert not any(self.stacks.values()), "slices that never end"
        self.slices.sort(key=lambda item: item[0])
        self.slices = [Slice(*item[1:]) for item in self.slices]
        self.read_flows()

    def read_names(self, packet):
        """The first packet: it clears the state of the sequence, and has all names."""
        assert packet.uint(10) == 1 and packet.uint(13) == CLEARED and packet.uint(87) == 1
        data = packet.message(12)

        def names(field):
            table = {name.uint(1): name.text(2) for name in data.messages(field)}
            assert 0 not in table and len(table) == len(data.messages(field))
            return table
        self.categories, self.names, self.keys, self.strings = names(1), names(2), names(3), names(29)

    def read_track(self, track):
        uuid = track.uint(1)
        assert uuid and uuid not in self.tracks, "uuid"
        process, thread, counter = (track.message(number) for number in (3, 4, 8))
        parent = track.uint(5)
        name = track.text(2)
        if process is not None:
            assert parent is None and process.text(6) == name and track.uint(11) == EXPLICIT
            self.tracks[uuid] = ("process", name, process.uint(1), None)
            return
        kind, _, pid, _ = self.tracks[parent]
        assert kind == "process", "a track is of a process"
        if thread is not None:
            assert thread.uint(1) == pid and thread.text(5) == name and thread.uint(2) == track.uint(12)
            self.tracks[uuid] = ("thread", name, parent, thread.uint(2))
        elif counter is not None:
            self.tracks[uuid] = ("counter", name, parent, counter.uint(3))
        else:
            assert name in [row[1] for row in self.tracks.values()], "a second track of a row"
            self.tracks[uuid] = ("second", name, parent, None)

    def value(self, annotation):
        if 12 in annotation.fields:
            return [self.value(value) for value in annotation.messages(12)]
        if 2 in annotation.fields:
            return bool(annotation.uint(2))
        if 3 in annotation.fields:
            return annotation.uint(3)
        if 6 in annotation.fields:
            return annotation.text(6)
        return self.strings[annotation.uint(17)]

    def read_event(self, packet):
        event = packet.message(11)
        time, kind, track = packet.uint(8), event.uint(9), event.uint(11)
        assert packet.uint(13) == NEEDS, "what names by number needs the names"
        assert time >= self.last, "packets are in the order of their times"
        self.last = time
        sort, name, parent, _ = self.tracks[track]
        row = (self.tracks[parent][1], name)
        if kind == COUNTER:
            assert sort == "counter"
            self.counters[row].append((time, event.uint(30)))
            return
        assert sort in ("thread", "second")
        args = {self.keys[annotation.uint(1)]: self.value(annotation) for annotation in event.messages(4)}
        if kind == SLICE_END:
            assert set(event.fields) == {9, 11}
            order, start, *rest = self.stacks[track].pop()
            self.slices.append((order, row, start, time, *rest, len(self.stacks[track])))
            return
        category = self.categories[event.uint(3)]
        title = self.names[event.uint(10)]
        if kind == INSTANT:
            self.instants.append(Instant(row, time, title, category, args))
            return
        assert kind == SLICE_BEGIN
        self.n_begun += 1
        self.stacks[track].append((self.n_begun, time, title, category, args, event.all(47, 1), event.all(48, 1)))

    def read_flows(self):
        """id -> (where it leaves, where it ends): each once, and in that order."""
        self.flows = {}
        for item in self.slices:
            for flow in item.flows_out:
                assert flow not in self.flows
                self.flows[flow] = [item]
            for flow in item.flows_in:
                assert len(self.flows[flow]) == 1
                self.flows[flow].append(item)
        assert all(len(ends) == 2 for ends in self.flows.values())

    def of(self, category):
        return [item for item in self.slices if item.category == category]


# --- what the records say ---

def task_args(truth, task):
    args = {"task": task_label(task.id), "ring": task.id >> 32}
    if task.priority:
        args["priority"] = task.priority
    if task.deps:
        args["waited_for"] = [task_label(p) for p in task.deps]
    return args


def run_args(truth, task):
    args = task_args(truth, task)
    for key in "submit", "ready", "dispatch", "ack", "complete", "retire":
        if getattr(task, key) is not None:
            args[key + "_ns"] = getattr(task, key)
    return dict(args, critical=task.critical, failed=task.failed)


def counters(truth):
    wanted = {"ready AIC tasks": truth.ready_curve(0), "ready AIV tasks": truth.ready_curve(1),
              "open scopes": truth.scope_curve()}
    for ring in range(truth.rings):
        wanted[f"live tasks, ring {ring}"] = truth.live_curve(ring)
    for core_type, name in enumerate(("AIC", "AIV")):
        busy = truth.curve([(t.start, t.end) for c in truth.type_cores(core_type) for t in truth.runs[c]])
        wanted[f"busy {name}"] = busy[1:] if busy and busy[0][1] == 0 else busy
    return {("AICPU", name): steps for name, steps in wanted.items() if steps}


def has_arrow(order, producer, consumer):
    if producer.start != consumer.start:
        return producer.start < consumer.start
    return producer.end == producer.start and (
        consumer.end > consumer.start or order[producer.id] < order[consumer.id])


def check(test, truth, data, sha256, is_run):
    """A trace of a chip against the records. A run knows where it lies on CLOCK_MONOTONIC, and its submits in a source."""
    case, trace = truth.case, Trace(data)
    places = [item.args.pop("submitted_at", "") for item in trace.of("run") + trace.of("submit")]
    test.assertTrue(all(place.rpartition(":")[0].endswith("trace-cases.c") if is_run else not place for place in places))
    processes = {uuid: (name, pid) for uuid, (kind, name, pid, _) in trace.tracks.items() if kind == "process"}
    rows = [(processes[parent], name, tid)
            for kind, name, parent, tid in trace.tracks.values() if kind == "thread"]
    wanted = [(("AICPU", 1), "orchestrator", 1)]
    wanted += [(("AICPU", 1), "orchestrator: stalls", 2)] if truth.stalls else []
    wanted += [(("AICPU", 1), f"scheduler {s}", 10 + s) for s in range(case.schedulers)]
    for core in range(case.n_cores):
        cluster = truth.locate(core)[0]
        wanted.append(((f"cluster {cluster}", 10 + cluster), truth.core_name(core), 1000 + core))
    test.assertEqual(sorted(rows, key=lambda row: row[2]), wanted)
    test.assertEqual(set(trace.clocks), {3, 6} if is_run and not case.virtual else set())
    test.assertEqual(trace.clocks.get(6, 0), 0)

    core_rows = [(f"cluster {truth.locate(c)[0]}", truth.core_name(c)) for c in range(case.n_cores)]
    test.assertEqual(
        sorted((item.row, item.start, item.end, item.name, repr(item.args)) for item in trace.of("run")),
        sorted((core_rows[core], t.start, t.end, truth.kernel_name(t.kernel), repr(run_args(truth, t)))
               for core, runs in enumerate(truth.runs) for t in runs))
    orchestrator = ("AICPU", "orchestrator")
    test.assertEqual(
        sorted((item.row, item.start, item.end, item.name, item.args["task"], repr(item.args))
               for item in trace.of("submit")),
        sorted((orchestrator, t.submit, max(t.submit, t.submit_end), truth.kernel_name(t.kernel), task_label(t.id),
                repr(task_args(truth, t))) for t in truth.tasks.values() if t.submit is not None))
    test.assertEqual(
        sorted((item.row, item.start, item.end, item.args["depth"]) for item in trace.of("scope")),
        sorted((orchestrator,) + scope for scope in truth.scopes))
    test.assertEqual(
        sorted((item.row[1], item.start, item.end, item.name, item.args["ring"]) for item in trace.of("stall")),
        sorted(("orchestrator: stalls", start, end, "wait for " + stall_name(what), what & 0xff)
               for start, end, what in truth.stalls))
    test.assertEqual(
        sorted((item.row[1], item.time, item.name, item.args["task"])
               for item in trace.instants if item.category == "scheduler"),
        sorted((f"scheduler {t.scheduler}", time, name, task_label(t.id)) for t in truth.tasks.values()
               for name, time in (("dispatch", t.dispatch), ("complete", t.complete))
               if t.scheduler is not None and time is not None))
    order = {number: i for i, number in enumerate(truth.tasks)}
    test.assertEqual(
        sorted((begin.args["task"], end.args["task"]) for begin, end in trace.flows.values()),
        sorted((task_label(p), task_label(t.id)) for t in truth.tasks.values() for p in t.deps
               if t.core is not None and p in truth.tasks and truth.tasks[p].core is not None
               and has_arrow(order, truth.tasks[p], t)))
    test.assertEqual(dict(trace.counters), counters(truth))
    head, = [item for item in trace.instants if item.category == "trace"]
    test.assertEqual(head.args, {
        "title": case.title, "clock": "virtual" if case.virtual else "wall", "recorded": truth.recorded,
        "dropped": truth.dropped, "tasks": len(truth.tasks), "edges": truth.edges, "sha256": sha256})
