# remote_protocol.py: which protocol do both ends of a remote worker speak?
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "..", "..", "pto", "remote", "wire", "remote-messages.h"), encoding="utf-8") as header:
    PROTOCOL = int(re.search(r"#define PTO_REMOTE_PROTOCOL (\d+)u", header.read())[1])
