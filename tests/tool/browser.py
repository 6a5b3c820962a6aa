# browser.py: how does a test drive a browser?
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium without a screen, through chromedriver and what W3C WebDriver says."""
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

DEADLINE = 60
BROWSERS = "chromium", "chromium-browser", "google-chrome"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011", "Tab": "\ue004"}


def missing():
    """Which program is not there; None: all are."""
    for names in (BROWSERS, ("chromedriver",)):
        if not any(shutil.which(name) for name in names):
            return names[0]
    return None


class Browser:
    """The driver is told where the browser is by number: that "localhost" has an address is for /etc/hosts to say, which
    small machines do not have."""

    def __init__(self, width=1440, height=900):
        # What tests ask of malloc() is not asked of a browser.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("MALLOC_", "LD_", "ASAN_", "TSAN_", "UBSAN_"))}
        self.programs = []
        self.session = ""
        self.profile = tempfile.TemporaryDirectory(prefix="pto-browser-", ignore_cleanup_errors=True)
        # A browser that ends by a signal leaves the links to its socket there.
        environment["TMPDIR"] = self.profile.name
        try:
            name = next(filter(shutil.which, BROWSERS))
            address = self.start(r"DevTools listening on ws://([^/]+)/", environment, [
                name, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--force-prefers-reduced-motion", "--hide-scrollbars", "--no-first-run", "--remote-debugging-port=0",
                f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}", "about:blank"])
            self.base = "http://127.0.0.1:" + self.start(r"started successfully on port (\d+)", environment,
                                                         ["chromedriver", "--port=0"])
            session = self.begin({"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {"debuggerAddress": address}}}})
            self.session = "/session/" + session["sessionId"]
            self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                         deviceScaleFactor=1, mobile=False)
        except BaseException:
            self.close()
            raise

    def start(self, pattern, environment, command):
        """What it says of itself as it comes up."""
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   encoding="utf-8", errors="replace", env=environment, start_new_session=True)
        self.programs.append(program)
        said = []
        for line in program.stdout:
            said.append(line)
            if found := re.search(pattern, line):
                # Whatever else it has to say, nobody waits for room in the pipe.
                threading.Thread(target=program.stdout.read, daemon=True).start()
                return found.group(1)
        raise RuntimeError(f"{command[0]} has not come up:\n" + "".join(said[-20:]))

    def begin(self, wanted):
        """On a busy machine the browser's own parts may miss each other as they come up."""
        for _ in range(2):
            try:
                return self.ask("POST", "/session", wanted)
            except RuntimeError as error:
                if "session not created" not in str(error):
                    raise
        return self.ask("POST", "/session", wanted)

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", "")
        finally:
            for program in reversed(self.programs):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGTERM)
                program.wait(DEADLINE)
            self.profile.cleanup()

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + self.session + path, method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def command(self, name, **arguments):
        """Of the protocol of the browser's own tools."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": name, "params": arguments})

    def open(self, path):
        self.ask("POST", "/url", {"url": pathlib.Path(path).absolute().as_uri()})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def settle(self):
        """Until everything that is due has been drawn."""
        self.ask("POST", "/execute/async", {"script": """
            const done = arguments[0];
            (function look () {
              if (window.report && report.isMoving)
                requestAnimationFrame (look);
              else
                requestAnimationFrame (() => requestAnimationFrame (() => done (0)));
            }) ();""", "args": []})

    def act(self, *devices):
        self.ask("POST", "/actions", {"actions": list(devices)})
        self.settle()

    def press(self, *keys):
        self.act({"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]})

    def write(self, text):
        self.press(*text)

    def click(self, x, y, times=1):
        self.act({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)}]
            + [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}] * times})

    def drag(self, x, y, to_x, to_y):
        self.act({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": round((x + to_x) / 2), "y": round((y + to_y) / 2)},
            {"type": "pointerMove", "x": round(to_x), "y": round(to_y)}, {"type": "pointerUp", "button": 0}]})

    def hover(self, x, y):
        self.act({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)}]})

    def wheel(self, x, y, by, key=None):
        wheel = {"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": by, "duration": 0}]}
        self.act(wheel)

    def enter_frame(self, selector):
        element = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", "/frame", {"id": element})

    def leave_frame(self):
        self.ask("POST", "/frame", {"id": None})

    def errors(self):
        """What the console has said since the last time."""
        return [line["message"] for line in self.ask("POST", "/se/log", {"type": "browser"})]

    def screenshot(self):
        return base64.b64decode(self.ask("GET", "/screenshot"))
