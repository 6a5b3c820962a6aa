# remote_meddler.py: what if a remote worker sends an exception that does something when it is unpickled?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: pto-remote, the directory that is made by whoever unpickles, and what pto-remote is given. Failures that it tells of
# go on with such contents, their own and those of a member.
import hashlib
import os
import pickle
import struct
import subprocess
import sys

from gi.repository import Gio, GLib

program, trap = sys.argv[1:3]


class Trap:
    def __reduce__(self):
        return os.mkdir, (trap,)


def exception(name, text, members=()):
    contents = b"Python pickle\0" + pickle.dumps(Trap())
    return GLib.Variant("(sssavayay)", (name, text, "", list(members), contents, hashlib.sha256(contents).digest()))


def meddle(message):
    """With what became of one task (pto/remote/wire/task-format.h)."""
    body = message.get_body()
    if body is None or body.get_type_string() != "(ay)":
        return
    data = bytes(body.unpack()[0])
    head = list(struct.unpack_from("<2QIi4I", data, 16)) if len(data) >= 56 else [0] * 8
    if head[6] == 0:
        return
    at = 56 + sum(size + -size % 8 for size in head[4:6])
    detail = exception("remote_steps.Unwilling", "both", [exception("remote_steps.Unwilling", "one")]).get_data_as_bytes().get_data()
    head[6] = len(detail)
    message.set_body(GLib.Variant("(ay)", (data[:16] + struct.pack("<2QIi4I", *head) + data[56:at] + detail + bytes(-len(detail) % 8),)))


with subprocess.Popen([program, *sys.argv[3:]], stdout=subprocess.PIPE) as process:
    while len(head := process.stdout.read(16)) == 16:
        blob = head + process.stdout.read(Gio.DBusMessage.bytes_needed(head) - 16)
        message = Gio.DBusMessage.new_from_blob(blob, Gio.DBusCapabilityFlags.NONE)
        meddle(message)
        sys.stdout.buffer.write(message.to_blob(Gio.DBusCapabilityFlags.NONE))
        sys.stdout.buffer.flush()
sys.exit(process.returncode)
