"""A headless Chromium for tests, spoken to over a pipe in the DevTools protocol: no package and no port is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
TIMEOUT = 60.0
_LAUNCH = "import os, sys; a = sys.argv; os.dup2(int(a[1]), 3); os.dup2(int(a[2]), 4); os.execv(a[3], a[3:])"


def find_chromium() -> str | None:
    """The browser's path: $CHROMIUM, or the first usual name on PATH."""
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome", "chrome"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One page in one headless browser; use it as a context manager."""

    def __init__(self, path: str, width: int = 1280, height: int = 900) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        # Chromium reads commands from file descriptor 3 and writes answers to 4; the child puts the pipes' ends there.
        command = [sys.executable, "-c", _LAUNCH, str(to_child), str(from_child), path, *FLAGS]
        command += [f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(to_child, from_child), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        self._attach(next(target["targetId"] for target in targets if target["type"] == "page"))
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._send(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _attach(self, page: str) -> None:
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    @contextmanager
    def tab(self) -> Iterator[None]:
        """Another tab, with the same cookies, in front meanwhile."""
        first, self._session = self._session, None
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._attach(page)
        try:
            yield
        finally:
            self._session = None
            self.call("Target.closeTarget", targetId=page)
            self._session = first

    def open(self, url: str) -> None:
        """Load a page and wait until it is complete; a new fragment alone does not load it again."""
        self.events.clear()
        if self.call("Page.navigate", url=url).get("loaderId") is None:
            return
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:1000])
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until the expression is true."""
        deadline = time.monotonic() + TIMEOUT
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Another window size, and light or dark."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def press(self, key: str, text: str = "") -> None:
        """One key, down and up."""
        code = {"Enter": 13, "Tab": 9, " ": 32}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)

    def write(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """The window, or the whole page, as a PNG file."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def requests(self) -> list[str]:
        """Addresses asked for since `open`, without what the page carries in itself."""
        self.evaluate("1")
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [url for event in sent if not (url := event["params"]["request"]["url"]).startswith("data:")]

    def complaints(self) -> list[str]:
        """What the console and the log said since `open`: errors, refusals by the content security policy."""
        self.evaluate("1")
        found = []
        for event in self.events:
            if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                found.append(json.dumps(event["params"])[:500])
        return found

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._write, data) :]

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select([self._read], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise OSError("the browser has gone")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))
