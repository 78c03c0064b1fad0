"""A schema registry with the REST calls that clients make, as Confluent documents them."""

from __future__ import annotations

import json
import re
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit
from uuid import UUID

if TYPE_CHECKING:
    from types import TracebackType


class Call(NamedTuple):
    """A request."""

    path: str
    query: str
    authorization: str | None


def guid_of(number: int) -> str:
    """Return the GUID of the schema with this id."""
    return str(UUID(int=number << 96 | 0x1234))


class FakeRegistry:
    """A registry on a free port, and its faults."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []  # the id is the place, from 1
        self.subjects: dict[str, list[int]] = {}
        self.calls: list[Call] = []
        self.authorization: str | None = None  # that requests need
        self.fault: tuple[int, bytes] | None = None  # that is answered instead
        self.delay = 0.0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, subject: str, text: str, kind: str = "AVRO", **more: Any) -> int:
        """Register a schema, and return its id; `references`: what it imports."""
        schema = {"schema": text, "schemaType": kind, **more}
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        """Answer a request."""
        if found := re.fullmatch(r"/schemas/(?:ids|guids)/([0-9a-f-]+)", path):
            names = {
                name: k for k in range(len(self.schemas)) for name in (str(k + 1), guid_of(k + 1))
            }
            if found[1] not in names:
                return 404, {"error_code": 40403, "message": f"Schema {found[1]} not found"}
            return 200, self.schemas[names[found[1]]]
        if not (found := re.fullmatch(r"/subjects/([^/]+)(?:/versions(?:/(\w+))?)?", path)):
            return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        subject = unquote(found[1])
        if body is not None:
            return self.answer_to(body, subject, register=path.endswith("/versions"))
        versions = self.subjects.get(subject)
        if versions is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        version = len(versions) if found[2] == "latest" else int(found[2])
        number = versions[version - 1]
        return 200, {
            "subject": subject, "version": version, "id": number, **self.schemas[number - 1],
        }  # fmt: skip

    def answer_to(
        self, body: dict[str, Any], subject: str, *, register: bool
    ) -> tuple[int, dict[str, Any]]:
        """Register a schema, or look it up."""
        more = {"references": body["references"]} if body.get("references") else {}
        kind = body.get("schemaType", "AVRO")
        schema = {"schema": body["schema"], "schemaType": kind, **more}
        known = [self.schemas[one - 1] for one in self.subjects.get(subject, [])]
        if not register and schema not in known:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        number = self.add(subject, body["schema"], kind, **more)
        version = self.subjects[subject].index(number) + 1
        known_as = {"id": number, "guid": guid_of(number), "version": version}
        return 200, {**known_as, "subject": subject, **body}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(None)

            def do_POST(self) -> None:
                self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _reply(self, body: dict[str, Any] | None) -> None:
                parts, login = urlsplit(self.path), self.headers["Authorization"]
                registry.calls.append(Call(parts.path, parts.query, login))
                time.sleep(registry.delay)
                code, data = 200, b""
                if registry.fault is not None:
                    code, data = registry.fault
                elif registry.authorization not in {None, login}:
                    code, data = 401, b'{"error_code": 401, "message": "Unauthorized"}'
                else:
                    code, answer = registry.answer(parts.path, body)
                    data = json.dumps(answer).encode()
                try:
                    self.send_response(HTTPStatus(code))
                    self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except ConnectionError:  # a client that did not wait
                    return

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
