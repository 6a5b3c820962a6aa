# PtoTraces.py: traces and costs, for the override of Python.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
from __future__ import annotations

import collections.abc
import html
import os

from ..module import get_introspection_module

Pto = get_introspection_module("Pto")
from . import PtoChecks as _checks  # noqa: E402, it asks for types
from .PtoEnums import by_nick  # noqa: E402
from .PtoText import N_, _, shown  # noqa: E402

_NO_TOPIC = N_("{what} is nothing that a trace is asked: {names}")
_NO_CLOCK = N_("{what} is no clock: {names}")


def _named(enum, what, refusal):
    """One of an enumeration, of its name, too, as the program has it."""
    if not isinstance(what, str):
        return what
    names = by_nick(enum)
    if what not in names:
        raise ValueError(_(refusal).format(what=shown(what), names=", ".join(names)))
    return names[what]


def _label(task):
    """What names a task in a trace: 17, "17", "1:17", "7/1:17", or an id of JSON."""
    if isinstance(task, Pto.TraceTask):
        return task.dup_label()
    return task if isinstance(task, str) else str(_checks.integer(task, "a task"))


def _settings(given):
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not isinstance(given, collections.abc.Iterable):
        if isinstance(given, str):
            raise TypeError(_("settings: {given} is no list of texts, such as [{given}]").format(given=shown(given)))
        raise TypeError(_("settings: {given} is no list of texts").format(given=shown(given)))
    return list(given)


class Trace(Pto.Trace):
    """What a run recorded: worker.trace, or of a file."""

    @staticmethod
    def new_from_file(path: _Path) -> Trace:
        """As trace.save() has written it."""
        return Pto.Trace.new_from_file(os.fspath(path))

    def save(self, path: _Path) -> None:
        """To a file, in the format that its name ends in."""
        Pto.Trace.save(self, os.fspath(path))

    def save_html(self, path: _Path) -> None:
        """A report: one page, which needs nothing else."""
        Pto.Trace.save_html(self, os.fspath(path))

    def save_json(self, path: _Path) -> None:
        """Trace events, which ui.perfetto.dev opens."""
        Pto.Trace.save_json(self, os.fspath(path))

    def save_perfetto(self, path: _Path) -> None:
        """Perfetto's own format."""
        Pto.Trace.save_perfetto(self, os.fspath(path))

    def save_svg(self, path: _Path) -> None:
        """A picture: a row for each core."""
        Pto.Trace.save_svg(self, os.fspath(path))

    def describe(self, topic: str | TraceTopic) -> str:
        """Of Pto.TraceTopic, or by its name: "critical-path"."""
        return Pto.Trace.describe(self, _named(Pto.TraceTopic, topic, _NO_TOPIC))

    def describe_json(self, topic: str | TraceTopic) -> str:
        """The same as JSON."""
        return Pto.Trace.describe_json(self, _named(Pto.TraceTopic, topic, _NO_TOPIC))

    def explain(self, task: str | int | TraceTask) -> str:
        """Why a task started when it did: one of list_tasks(), its number or id, "1:17" of ring 1, "7/1:17" inside of task 7."""
        return Pto.Trace.explain(self, _label(task))

    def explain_json(self, task: str | int | TraceTask) -> str:
        """The same as JSON."""
        return Pto.Trace.explain_json(self, _label(task))

    explain_task, explain_task_json = explain, explain_json

    def simulate(self, settings: Iterable[str] | None = None) -> Trace:
        """Of a list of settings: ["link-latency=2us", "function=*=constant:5000"]."""
        return Pto.Trace.simulate(self, _settings(settings))

    def predict(self, settings: Iterable[str] | None = None) -> str:
        """Of a list of settings: ["clusters=8", "kernel=add=0.5x"]."""
        return Pto.Trace.predict(self, _settings(settings))

    def predict_json(self, settings: Iterable[str] | None = None) -> str:
        """The same as JSON."""
        return Pto.Trace.predict_json(self, _settings(settings))

    def _repr_html_(self) -> str:
        """The report, in a frame: what a notebook shows of a trace. It can not reach the page around it."""
        return ('<iframe sandbox="allow-scripts" title="Trace of a run" loading="lazy" style="width:100%;height:560px;'
                f'border:1px solid #8884;border-radius:8px" srcdoc="{html.escape(self.to_html())}"></iframe>')

    def _repr_svg_(self) -> str:
        """The picture: what stands for a trace where a notebook shows no frames, as when it becomes a document."""
        return self.to_svg()


class Costs(Pto.Costs):
    """How long kernels take, as traces, tables and single times have it."""

    @staticmethod
    def new_from_history() -> Costs:
        """What runs on this machine have left."""
        return Pto.Costs.new_from_history()

    def add_file(self, path: _Path) -> None:
        """A trace, or a table."""
        Pto.Costs.add_file(self, os.fspath(path))

    def add_time(self, kernel: str, clock: str | Clock, bytes: int, ns: int) -> None:
        """Of Pto.Clock, or by its name: "chip"."""
        Pto.Costs.add_time(self, kernel, _named(Pto.Clock, clock, _NO_CLOCK), bytes, ns)

    def dup_cost(self, kernel: str, clock: str | Clock) -> str | None:
        """What a kernel costs on that clock, as a manifest writes it."""
        return Pto.Costs.dup_cost(self, kernel, _named(Pto.Clock, clock, _NO_CLOCK))
