"""A schema registry: the schemas that records name by an id.

The REST interface is Confluent's, which other registries offer too.
"""

from __future__ import annotations

import base64
import json
import math
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from streamlearn.errors import InvalidEventError, RegistryError

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
NO_SCHEMA = {40401, 40402, 40403}  # error codes: no such subject, version, schema
DENIED = {401, 403}
RETRY_SECONDS = 0.25
FORGET_SECONDS = 60.0  # after which unknown schemas are waited for again


@dataclass(frozen=True)
class Schema:
    """A schema: its kind ("AVRO", "PROTOBUF" or "JSON"), its text, and what it imports, by name."""

    kind: str
    text: str
    imports: tuple[tuple[str, Schema], ...] = ()

    def with_imports(self, name: str = "") -> dict[str, Schema]:
        """Return the schema and all that it imports, these first, by name."""
        found: dict[str, Schema] = {}
        for imported, schema in self.imports:
            found |= schema.with_imports(imported)
        return found | {name: self}


@dataclass
class SchemaRegistry:
    """A client of a schema registry.

    Parameters
    ----------
    url
        Of the registry, or several separated by commas, which are tried in this order.
    username, password
        For basic authentication.
    token
        For bearer authentication.
    cafile, certfile, keyfile
        PEM files: the trusted authorities (by default the system's), and the client certificate
        with its key.
    timeout_seconds
        How long one request may take.
    wait_seconds
        How long to wait for a schema that the registry does not know yet.
    """

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    timeout_seconds: float = 5.0
    wait_seconds: float = 10.0
    _schemas: dict[tuple[str, bool], Schema] = field(default_factory=dict, repr=False)
    _unknown_since: float = field(default=-math.inf, repr=False)

    def __post_init__(self) -> None:
        self._urls = [one.strip().rstrip("/") for one in self.url.split(",") if one.strip()]
        for one in self._urls:
            if urlsplit(one).scheme not in {"http", "https"}:
                raise ValueError(f"registry {one!r}: expected a URL that begins with http or https")
        if not self._urls:
            raise ValueError("the URL of the registry is empty")
        if self.token is not None and self.username is not None:
            raise ValueError("registry: give a username or a token, not both")
        self._headers = {"Accept": ACCEPT, "Content-Type": "application/json"}
        if self.username is not None:
            login = f"{self.username}:{self.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        elif self.token is not None:
            self._headers["Authorization"] = f"Bearer {self.token}"
        context = ssl.create_default_context(cafile=self.cafile)
        if self.certfile is not None:
            context.load_cert_chain(self.certfile, self.keyfile)
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def schema(self, schema_id: int | str, *, serialized: bool = False) -> Schema:
        """Return the schema of an id, a number or a GUID.

        Wait for one that is not known yet; then raise InvalidEventError. `serialized`: Protobuf as
        a base64-encoded descriptor. RegistryError if the registry does not answer.
        """
        key = (str(schema_id), serialized)
        found = self._schemas.get(key)
        if found is not None:
            return found
        kind = "ids" if isinstance(schema_id, int) else "guids"
        path = f"/schemas/{kind}/{schema_id}{'?format=serialized' if serialized else ''}"
        answer = self._wait_for(path)
        if answer is None:
            raise InvalidEventError(
                f"the registry has no schema with the id {schema_id}: the producer uses another "
                "registry, or the schema was deleted",
                "schema",
            )
        found = self._schema_of(answer, serialized=serialized)
        self._schemas[key] = found
        return found

    def latest(self, subject: str, *, serialized: bool = False) -> tuple[int, Schema]:
        """Return the id and the newest schema of a subject."""
        answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        if answer is None:
            raise RegistryError(f"{self._urls[0]}: no subject {subject!r}")
        return int(answer["id"]), self.schema(int(answer["id"]), serialized=serialized)

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema, unless it is registered already; return its id."""
        body = {"schema": schema.text, "schemaType": schema.kind}
        answer = self._request(f"/subjects/{quote(subject, safe='')}/versions", body)
        if answer is None:
            raise RegistryError(f"{self._urls[0]}: cannot register a schema of {subject!r}")
        return int(answer["id"])

    def _schema_of(self, answer: dict[str, Any], *, serialized: bool) -> Schema:
        imports = []
        for one in answer.get("references") or ():
            form = "?format=serialized" if serialized else ""
            path = f"/subjects/{quote(one['subject'], safe='')}/versions/{one['version']}{form}"
            inner = self._get(path)
            if inner is None:
                raise RegistryError(
                    f"{self._urls[0]}: schema {one['name']!r} is referred to, but does not exist"
                )
            imports.append((str(one["name"]), self._schema_of(inner, serialized=serialized)))
        return Schema(answer.get("schemaType") or "AVRO", str(answer["schema"]), tuple(imports))

    def _wait_for(self, path: str) -> dict[str, Any] | None:
        """Ask until the answer is known; None for what stays unknown.

        After one schema stayed unknown, others are not waited for: a stream with many wrong ids
        must not take this long for each.
        """
        waits = time.monotonic() - self._unknown_since > FORGET_SECONDS
        deadline = time.monotonic() + (self.wait_seconds if waits else 0.0)
        while True:
            answer = self._get(path)
            if answer is not None:
                return answer
            if time.monotonic() >= deadline:
                if waits:
                    self._unknown_since = time.monotonic()
                return None
            time.sleep(min(RETRY_SECONDS, max(deadline - time.monotonic(), 0.0)))

    def _get(self, path: str) -> dict[str, Any] | None:
        return self._request(path, None)

    def _request(self, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the answer of the first registry that gives one; None for a schema it lacks."""
        problem = ""
        for url in self._urls:
            try:
                return self._ask(url + path, body)
            except RegistryError as error:
                problem = str(error)
        raise RegistryError(problem)

    def _ask(self, url: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers)  # noqa: S310 - checked above
        try:
            with self._opener.open(request, timeout=self.timeout_seconds) as answer:
                found: dict[str, Any] = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(url, error)
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise RegistryError(f"{url}: the schema registry does not answer: {reason}") from error
        return found

    @staticmethod
    def _refused(url: str, error: urllib.error.HTTPError) -> None:
        """Return None for a schema that does not exist; raise RegistryError otherwise."""
        try:
            told = json.loads(error.read())
            code, message = told.get("error_code"), told.get("message")
        except (OSError, ValueError, AttributeError):
            code, message = None, None
        if error.code == 404 and code in NO_SCHEMA:
            return
        if error.code in DENIED:
            raise RegistryError(
                f"{url}: the schema registry refuses the login ({error.code}): set the username and "
                "password, the token or the certificate"
            )
        raise RegistryError(f"{url}: the schema registry answers {error.code}: {message or error.reason}")
