# remote_liar.py: what if a remote worker is the process of another number than it says?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Arguments: the number that it says, pto-remote, and what that is given.
import subprocess
import sys

from gi.repository import Gio, GLib

with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as process:
    while len(head := process.stdout.read(16)) == 16:
        blob = head + process.stdout.read(Gio.DBusMessage.bytes_needed(head) - 16)
        message = Gio.DBusMessage.new_from_blob(blob, Gio.DBusCapabilityFlags.NONE)
        body = message.get_body()
        if body is not None and body.get_type_string() == "(ussua{sv})":
            parts = [body.get_child_value(i) for i in range(5)]
            parts[3] = GLib.Variant("u", int(sys.argv[1]))
            message.set_body(GLib.Variant.new_tuple(*parts))
        sys.stdout.buffer.write(message.to_blob(Gio.DBusCapabilityFlags.NONE))
        sys.stdout.buffer.flush()
sys.exit(process.returncode)
