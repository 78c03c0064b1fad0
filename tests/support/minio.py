"""A real S3 server for tests: MinIO, built from its Go module, without Docker or root."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from tests.broker.apache_kafka import HOST, Unavailable, free_ports
from tests.support.go import program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUCKET = "models"
USER, PASSWORD = "alice", "in-wonderland"


class MinIO:
    """A server with one bucket."""

    root = f"s3://{BUCKET}"
    no_bucket = "NoSuchBucket"
    denied = "SignatureDoesNotMatch"
    wrong_login = ("AWS_SECRET_ACCESS_KEY", "wrong")

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, console = free_ports(2)
        (directory / "data" / BUCKET).mkdir(parents=True)
        addresses = ["--address", f"{HOST}:{self.port}", "--console-address", f"{HOST}:{console}"]
        mortal = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        command = [*mortal, str(program("minio")), "server", str(directory / "data"), *addresses]
        with (directory / "minio.log").open("wb") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, "MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": PASSWORD},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60.0
        while not self._ready():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.stop()
                raise Unavailable(f"MinIO did not start: {(directory / 'minio.log').read_text()}")
            time.sleep(0.05)

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    def environment(self, port: int) -> dict[str, str]:
        """Return the environment of its clients, which reach it at a port."""
        return {
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
            "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
            "AWS_REGION": "us-east-1",
        }

    def _ready(self) -> bool:
        """Tell whether it serves requests; for a while after it listens it refuses them."""
        try:
            with urllib.request.urlopen(f"{self.endpoint}/minio/health/cluster", timeout=5) as got:  # noqa: S310
                return bool(got.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()

    def temporary_credentials(self) -> dict[str, str]:
        """Return new credentials with a session token, as STS and container endpoints do."""
        body = urlencode(
            {"Action": "AssumeRole", "Version": "2011-06-15", "DurationSeconds": "900"}
        ).encode()
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.endpoint}/", body, signed(body, {"host": f"{HOST}:{self.port}"})
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            text = answer.read().decode()
        found = dict(re.findall(r"<(AccessKeyId|SecretAccessKey|SessionToken)>(.*?)<", text))
        found["Token"] = found.pop("SessionToken")
        return found


def signed(body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to STS, signed by Amazon's version 4."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    given = {
        "content-type": "application/x-www-form-urlencoded",
        **headers,
        "x-amz-content-sha256": digest,
        "x-amz-date": stamp,
    }
    names = ";".join(sorted(given))
    lines = [f"{name}:{given[name]}" for name in sorted(given)]
    request = "\n".join(["POST", "/", "", *lines, "", names, digest])
    scope = f"{stamp[:8]}/us-east-1/sts/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}"
    key = f"AWS4{PASSWORD}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    login = f"AWS4-HMAC-SHA256 Credential={USER}/{scope}, SignedHeaders={names}"
    return {**given, "authorization": f"{login}, Signature={key.hex()}"}
