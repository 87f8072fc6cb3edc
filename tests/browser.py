"""A headless browser for tests: Chromium, controlled through the DevTools protocol over pipes."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """A browser with one page. It records console errors and warnings, and all requested URLs except `data:` URLs."""

    def __init__(self, width: int, height: int, dark: bool = False) -> None:
        self.size, self.dark = (width, height), dark
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._count, self._unread = 0, b""

    def __enter__(self) -> "Browser":
        assert CHROMIUM
        self._home = tempfile.mkdtemp(prefix="browser-")
        low_input, self._write = os.pipe()
        self._read, low_output = os.pipe()
        their_input, their_output = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (low_input, low_output))
        os.close(low_input)
        os.close(low_output)
        # Chromium reads commands from file descriptor 3 and answers on 4.
        shell = ["bash", "-c", f'exec "$0" "$@" 3<&{their_input} 4>&{their_output}']
        command = [*shell, CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._home}", "about:blank"],
            pass_fds=(their_input, their_output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_input)
        os.close(their_output)
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        width, height = self.size
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._home, ignore_errors=True)

    def open(self, path: Path) -> None:
        self.send("Page.navigate", url=path.resolve().as_uri())
        self._receive(lambda message: message.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path, whole: bool = False) -> Path:
        taken = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
        return path

    def send(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        number = self._count
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._receive(lambda reply: reply.get("id") == number)
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self, is_it: Any) -> Any:
        while True:
            while b"\0" not in self._unread:
                more = os.read(self._read, 1 << 20)
                assert more, "the browser has exited"
                self._unread += more
            first, _, self._unread = self._unread.partition(b"\0")
            message = json.loads(first)
            self._notice(message)
            if is_it(message):
                return message

    def _notice(self, message: dict[str, Any]) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.errors.append(str(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not given["request"]["url"].startswith("data:"):
            self.requests.append(given["request"]["url"])
