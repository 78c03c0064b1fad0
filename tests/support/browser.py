"""A minimal client for headless Chromium over the WebDriver protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


class Browser:
    """A browser window."""

    def __init__(self, profile: Path) -> None:
        assert DRIVER is not None
        self.process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        started = next(line for line in self.process.stdout if "successfully on port" in line)
        self.base = f"http://127.0.0.1:{started.split()[-1].rstrip('.')}"
        arguments = [*OPTIONS, f"--user-data-dir={profile}"]
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        found = self.post("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{found['sessionId']}"

    def request(self, method: str, path: str, data: Any = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(self.base + path, body, method=method)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - ours
            return json.load(answer)["value"]

    def post(self, path: str, data: Any) -> Any:
        return self.request("POST", path, data)

    def devtools(self, command: str, **params: Any) -> Any:
        return self.post("/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, address: str) -> None:
        self.post("/url", {"url": address})

    def prefer(self, scheme: str) -> None:
        """Set the preferred color scheme, light or dark."""
        theme = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=theme)

    def resize(self, width: int, height: int) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def run(self, script: str, *arguments: Any) -> Any:
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def until(self, script: str, wanted: Callable[[Any], bool] = bool, seconds: float = 30) -> Any:
        """Wait until the result of a script meets a condition."""
        end = time.monotonic() + seconds
        while True:
            found = self.run(script)
            if wanted(found):
                return found
            assert time.monotonic() < end, f"{script} gives {found!r}; console: {self.console()}"
            time.sleep(0.05)

    def console(self) -> list[str]:
        """Return errors and warnings since the last call."""
        entries = self.post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in {"SEVERE", "WARNING"}]

    def type(self, selector: str, text: str) -> None:
        found = self.post("/element", {"using": "css selector", "value": selector})
        self.post(f"/element/{next(iter(found.values()))}/value", {"text": text})

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        taken = self.devtools("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        try:
            self.request("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait(10)
            assert self.process.stdout is not None
            self.process.stdout.close()
