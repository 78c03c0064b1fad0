"""A server of Azure Blob Storage for tests: Azurite, Microsoft's emulator, from npm.

`python -m tests.support.azurite` installs it, once, into the user's cache.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from email.utils import formatdate
from pathlib import Path

from tests.broker.apache_kafka import HOST, Unavailable, free_port

VERSION = "3.34.0"  # later ones need Node 22
SECONDS = 60.0  # for its start
CONTAINER = "models"
ACCOUNT = "devstoreaccount1"
# the key that Azurite gives this account
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
API = "2021-08-06"


def directory() -> Path:
    """Return where it is installed; it is, if it is not in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "streamlearn" / f"azurite-{VERSION}"
    if folder.is_dir():
        return folder
    if (npm := shutil.which("npm")) is None:
        raise Unavailable("Azurite needs npm on the path")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        (app := Path(work, "app")).mkdir()
        options = ["--prefix", str(app), "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(
            [npm, "install", *options, f"azurite@{VERSION}"],
            cwd=app,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"npm could not install Azurite: {done.stderr[-2000:]}")
        app.replace(folder)  # whole or not at all
    return folder


class Azurite:
    """A server with one container, which it keeps in memory."""

    root = f"az://{CONTAINER}"
    no_bucket = "ContainerNotFound"
    denied = "AuthorizationFailure"
    wrong_login = ("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"wrong").decode())

    def __init__(self, work: Path) -> None:
        if (node := shutil.which("node")) is None:
            raise Unavailable("Azurite needs node on the path")
        self.port = free_port()
        mortal = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        program = directory() / "node_modules/azurite/dist/src/blob/main.js"
        options = ["--blobHost", HOST, "--blobPort", str(self.port), "--inMemoryPersistence"]
        options += ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        self._log = work / "azurite.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*mortal, node, str(program), *options],
                cwd=work,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS
        while not self._has_container():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.stop()
                raise Unavailable(f"Azurite did not start: {self._log.read_text()}")
            time.sleep(0.05)

    def environment(self, port: int) -> dict[str, str]:
        """Return the environment of its clients, which reach it at a port."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://{HOST}:{port}/{ACCOUNT}",
        }

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()

    def _has_container(self) -> bool:
        """Create the container; False if the server does not answer yet."""
        stamp = formatdate(usegmt=True)
        given = f"x-ms-date:{stamp}\nx-ms-version:{API}\n"
        path = f"/{ACCOUNT}/{CONTAINER}"
        text = "PUT" + 12 * "\n" + f"{given}/{ACCOUNT}{path}\nrestype:container"
        digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        request = urllib.request.Request(
            f"http://{HOST}:{self.port}{path}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": stamp,
                "x-ms-version": API,
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 201)
        except urllib.request.HTTPError:
            raise
        except OSError:
            return False


if __name__ == "__main__":
    sys.stdout.write(f"{directory()}\n")
