"""A schema registry: the schemas that records name by an id.

The REST interface is Confluent's, which other registries offer too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from streamlearn.core.files import write_atomic
from streamlearn.errors import RegistryError, SchemaError

JSON = "application/vnd.schemaregistry.v1+json"
ACCEPT = f"{JSON}, application/json"
SERIALIZED = "?format=serialized"
NO_SCHEMA = {40401, 40402, 40403}  # error codes: no such subject, version, schema
DENIED = {401, 403}
RETRY_SECONDS = 0.25
FORGET_SECONDS = 60.0  # after which an unknown schema is asked for again


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema: its kind ("AVRO", "PROTOBUF" or "JSON"), its text, and what it imports, by name."""

    kind: str
    text: str
    imports: tuple[tuple[str, RegisteredSchema], ...] = ()

    def with_imports(self, name: str = "") -> dict[str, RegisteredSchema]:
        """Return the schema and all that it imports, these first, by name."""
        found: dict[str, RegisteredSchema] = {}
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
    cache
        A directory that keeps the schemas, for when the registry does not answer.
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
    cache: str | None = None
    _schemas: dict[int | str, RegisteredSchema] = field(default_factory=dict, repr=False)
    _unknown: dict[int | str, float] = field(default_factory=dict, repr=False)  # until when

    def __post_init__(self) -> None:
        self._urls = [one.strip().rstrip("/") for one in self.url.split(",") if one.strip()]
        for one in self._urls:
            if urlsplit(one).scheme not in {"http", "https"}:
                raise ValueError(f"registry {one!r}: expected a URL that begins with http or https")
        if not self._urls:
            raise ValueError("the URL of the registry is empty")
        if self.token is not None and self.username is not None:
            raise ValueError("registry: give a username or a token, not both")
        self._headers = {"Accept": ACCEPT}
        if self.username is not None:
            login = f"{self.username}:{self.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        elif self.token is not None:
            self._headers["Authorization"] = f"Bearer {self.token}"
        context = ssl.create_default_context(cafile=self.cafile)
        if self.certfile is not None:
            context.load_cert_chain(self.certfile, self.keyfile)
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def schema(self, schema_id: int | str, kind: str) -> RegisteredSchema:
        """Return the schema of an id, a number or a GUID; of Protobuf, its base64 descriptor.

        Wait for a schema that is not known yet. SchemaError if it stays unknown, or is of another
        kind; RegistryError if the registry does not answer.
        """
        found = self._schemas.get(schema_id)
        if found is None:
            path = f"/schemas/{'ids' if isinstance(schema_id, int) else 'guids'}/{schema_id}"
            serialized = kind == "PROTOBUF"
            answer = self._wait_for(schema_id, path + (SERIALIZED if serialized else ""))
            if answer is None:
                raise SchemaError(
                    "it is not in the registry; the producer uses another one, or it was deleted"
                )
            found = self._schemas[schema_id] = self._schema_of(answer, serialized=serialized)
        if found.kind != kind:
            raise SchemaError(f"it is of kind {found.kind}, not {kind}")
        return found

    def latest(self, subject: str, kind: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject; None if it has none."""
        serialized = kind == "PROTOBUF"
        path = f"/subjects/{quote(subject, safe='')}/versions/latest"
        answer = self._get(path + (SERIALIZED if serialized else ""), changes=True)
        if answer is None:
            return None
        found = self._schema_of(answer, serialized=serialized)
        if found.kind != kind:
            raise SchemaError(f"the newest schema of {subject} is of kind {found.kind}, not {kind}")
        return found

    def id_of(self, subject: str, text: str, kind: str, *, register: bool = True) -> int:
        """Return the id of a schema under a subject, registered if need be.

        Without `register`, RegistryError if the subject does not have it.
        """
        path = f"/subjects/{quote(subject, safe='')}{'/versions' if register else ''}"
        answer = self._get(path, {"schema": text, "schemaType": kind})
        if answer is None:
            raise RegistryError(
                f"{self._urls[0]}: the subject {subject} does not have the schema; register it, or "
                "set registry.register = true"
            )
        return int(answer["id"])

    def _schema_of(self, answer: dict[str, Any], *, serialized: bool) -> RegisteredSchema:
        imports = []
        for one in answer.get("references") or ():
            path = f"/subjects/{quote(one['subject'], safe='')}/versions/{one['version']}"
            inner = self._get(path + (SERIALIZED if serialized else ""))
            if inner is None:
                raise RegistryError(
                    f"{self._urls[0]}: schema {one['name']!r} is referred to, but does not exist"
                )
            imports.append((str(one["name"]), self._schema_of(inner, serialized=serialized)))
        return RegisteredSchema(
            answer.get("schemaType") or "AVRO", str(answer["schema"]), tuple(imports)
        )

    def _wait_for(self, schema_id: int | str, path: str) -> dict[str, Any] | None:
        """Ask until the answer is known; None for what stays unknown.

        It is not asked for again for a while, nor are others waited for: a stream with many wrong
        ids must not take this long for each.
        """
        start = time.monotonic()
        self._unknown = {one: until for one, until in self._unknown.items() if until > start}
        if schema_id in self._unknown:
            return None
        deadline = start if self._unknown else start + self.wait_seconds
        while (answer := self._get(path)) is None:
            left = deadline - time.monotonic()
            if left <= 0.0:
                self._unknown[schema_id] = time.monotonic() + FORGET_SECONDS
                return None
            time.sleep(min(RETRY_SECONDS, left))
        return answer

    def _get(
        self, path: str, body: dict[str, str] | None = None, *, changes: bool = False
    ) -> dict[str, Any] | None:
        """Return the answer of the first registry that gives one; None for a schema it lacks.

        Answers that never change are kept.
        """
        kept = None
        if self.cache is not None and not changes:
            key = hashlib.sha256(json.dumps([self.url, path, body]).encode())
            kept = Path(self.cache, f"{key.hexdigest()[:32]}.json")
            if (found := read_kept(kept)) is not None:
                return found
        problem = ""
        for url in self._urls:
            try:
                answer = self._ask(url + path, body)
            except RegistryError as error:
                problem = str(error)
            else:
                if kept is not None and answer is not None:
                    keep(kept, answer)
                return answer
        raise RegistryError(problem)

    def _ask(self, url: str, body: dict[str, str] | None) -> dict[str, Any] | None:
        headers = self._headers if body is None else {**self._headers, "Content-Type": JSON}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers)  # noqa: S310 - checked above
        try:
            with self._opener.open(request, timeout=self.timeout_seconds) as answer:
                found = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(url, error)
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise RegistryError(f"{url}: the schema registry does not answer: {reason}") from error
        if not isinstance(found, dict) or ("schema" if body is None else "id") not in found:
            raise RegistryError(f"{url}: the answer is not a schema; is this a schema registry?")
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
                f"{url}: the schema registry refuses the login ({error.code}): set the username "
                "and password, the token or the certificate"
            )
        raise RegistryError(
            f"{url}: the schema registry answers {error.code}: {message or error.reason}"
        )


def read_kept(path: Path) -> dict[str, Any] | None:
    """Return an answer that was kept; None if there is none, or the file is damaged."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def keep(path: Path, answer: dict[str, Any]) -> None:
    """Keep an answer in a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [json.dumps(answer).encode()])
    except OSError as error:
        raise RegistryError(
            f"{path.parent}: registry.cache cannot be written: {error.strerror}"
        ) from error
