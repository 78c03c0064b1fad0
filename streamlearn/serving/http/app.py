"""The routes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

import streamlearn
from streamlearn.serving.http import inference, openapi, page
from streamlearn.serving.http.answering import Answering
from streamlearn.serving.http.follower import Follower
from streamlearn.serving.http.guard import Guard, respond
from streamlearn.serving.http.log import ImpressionLog
from streamlearn.serving.http.metrics import COUNTS, RequestCounts, ServeCollector
from streamlearn.serving.http.predicting import Refusal, RequestProblem
from streamlearn.serving.http.reading import LINES, Disconnected, RequestError, read, split
from streamlearn.telemetry.metrics import Exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from streamlearn.serving.http.answering import Answer
    from streamlearn.serving.http.options import Options
    from streamlearn.serving.http.predicting import Predictor
    from streamlearn.serving.http.reading import Receive, Scope, Send

ENCODER = msgspec.json.Encoder(enc_hook=str)
EVENTS, INVALID = COUNTS.index("events"), COUNTS.index("invalid_events")


class Query(NamedTuple):
    """What a request asks for, beside its events."""

    learner: str | None = None
    explain: bool = False
    log: bool = True


class Service:
    """A server's state: the snapshots in use, what is counted, and the log."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.follower = Follower(options.path, options.settings.learners)
        self.answering = Answering(options, self.follower)
        self.counts = RequestCounts(options.counts, options.arms)
        self.exposition = Exposition(ServeCollector(self.counts, self.follower))
        self.log = None if options.log is None else ImpressionLog(options.log, self.counts)
        self.draining = False

    # -- POST /v1/predict -------------------------------------------------------------------------

    async def predict(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Predict an event, a list of events, or lines of events."""
        query = read_query(scope["query_string"])
        body = await self.body(scope, receive)
        given = split(body, header(scope, b"content-type"), self.options.settings.max_events)
        # nothing waits while records are predicted: each learner predicts with one snapshot
        answer = self.answering.answer(
            given.records, query.learner, explain=query.explain, log=query.log
        )
        await self.record(answer)
        found, predictor = answer.predictions, answer.predictor
        headers = [] if predictor is None else named(predictor)
        if given.kind == "lines":
            lines = [*headers, (b"content-type", LINES)]
            await respond(send, ENCODER.encode_lines(found), headers=lines)
        elif given.kind == "list":
            whole: dict[str, Any] = {"predictions": found}
            if predictor is not None:
                about = {"learner": predictor.learner, "version": predictor.version}
                whole = {**about, **whole}
            await respond(send, ENCODER.encode(whole), headers=headers)
        else:
            (one,) = found
            if isinstance(one, Refusal):
                await respond(send, ENCODER.encode(one), status=422, headers=headers)
                return
            if predictor is not None:
                one.learner, one.version = predictor.learner, predictor.version
            await respond(send, ENCODER.encode(one), headers=headers)

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request."""
        encoding = header(scope, b"content-encoding")
        if encoding not in {b"", b"identity"}:
            raise RequestError(
                415, f"the body is encoded as {encoding.decode('latin-1')}; send it unencoded"
            )
        settings = self.options.settings
        return await read(receive, settings.max_body_bytes, settings.body_seconds)

    async def record(self, answer: Answer) -> None:
        """Log and count what is about to be answered."""
        if answer.impressions and self.log is not None:
            await self.log.add(answer.impressions)
        self.counts.add(EVENTS, float(len(answer.predictions) - answer.invalid))
        if answer.invalid:
            self.counts.add(INVALID, float(answer.invalid))
        for arm, events in answer.arms.items():
            self.counts.add_arm(arm, float(events))

    # -- the Open Inference Protocol --------------------------------------------------------------

    async def infer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Predict the events of an inference request."""
        body = await self.body(scope, receive)
        request, records = inference.read(body, self.options.settings.max_events)
        learner = scope["path_params"]["learner"]
        predictor = self.answering.predictor(learner)
        answer = self.answering.answer(records, learner, explain=False, log=True)
        tensors = inference.wanted(request, inference.outputs(predictor, answer.predictions))
        await self.record(answer)
        result: dict[str, Any] = {
            "model_name": predictor.learner,
            "model_version": predictor.version,
            "outputs": tensors,
        }
        if request.id is not None:
            result["id"] = request.id
        await respond(send, ENCODER.encode(result))

    async def live(self, _: Request) -> Response:
        """Answer as long as the process does."""
        return encoded({"live": True})

    async def ready(self, _: Request) -> Response:
        """Answer whether there is the model that answers by default, and no shutdown."""
        ready = self.answering.default in self.follower.snapshots and not self.draining
        return encoded({"ready": ready}, 200 if ready else 503)

    def drain(self) -> None:
        """Tell balancers that the server is about to stop."""
        self.draining = True

    async def server(self, _: Request) -> Response:
        """Describe the server."""
        about = {"name": "streamlearn", "version": streamlearn.__version__, "extensions": []}
        return encoded(about)

    async def model(self, request: Request) -> Response:
        """Describe a model."""
        return encoded(inference.metadata(self.answering.predictor(request.path_params["learner"])))

    async def model_ready(self, request: Request) -> Response:
        """Answer whether there is a model of this name."""
        found = self.answering.predictor(request.path_params["learner"])
        return encoded({"name": found.learner, "ready": True})

    # -- everything else --------------------------------------------------------------------------

    async def learners(self, _: Request) -> Response:
        """List the learners and their versions."""
        found = [
            {
                "learner": name,
                "version": str(one.version),
                "written": one.written,
                "outputs": one.model.outputs,
                "default": name == self.answering.default,
                "promoted": name == self.follower.promoted,
            }
            for name, one in sorted(self.follower.snapshots.items())
        ]
        return encoded({"learners": found})

    async def metrics(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        text, kind = self.exposition.text(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

    async def openapi(self, _: Request) -> Response:
        """Return the description of the interface."""
        return encoded(openapi.document(self.options))

    async def page(self, _: Request) -> Response:
        """Return the page for trying it."""
        return Response(page.HTML, headers=page.HEADERS)

    def routes(self) -> list[Route]:
        """Return all routes."""
        return [
            Route("/v1/predict", Endpoint(self.predict), methods=["POST"]),
            Route("/v1/learners", self.learners),
            Route("/v2", self.server),
            Route("/v2/health/live", self.live),
            Route("/v2/health/ready", self.ready),
            Route("/v2/models/{learner}", self.model),
            Route("/v2/models/{learner}/ready", self.model_ready),
            Route("/v2/models/{learner}/infer", Endpoint(self.infer), methods=["POST"]),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.openapi),
            Route("/", self.page),
        ]


class Endpoint:
    """An ASGI application: Starlette wraps functions, but leaves objects as they are."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self.handle(scope, receive, send)


def application(options: Options) -> tuple[Guard, Service]:
    """Return the application, and its state."""
    service = Service(options)

    @asynccontextmanager
    async def follow(_: Starlette) -> AsyncIterator[None]:
        await service.follower.update()
        task = asyncio.create_task(service.follower.follow(options.poll_seconds))
        if service.log is not None:
            service.log.start()
        yield
        task.cancel()
        if service.log is not None:
            await service.log.close(options.settings.shutdown_seconds)

    inner = Starlette(
        routes=service.routes(),
        lifespan=follow,
        exception_handlers={
            RequestError: refused,
            Disconnected: gone,
            404: unknown_route,
            405: unknown_route,
            500: failed,
        },
    )
    guard = Guard(inner, options, service.counts)
    guard.on_drain.append(service.drain)
    return guard, service


async def refused(_: Request, error: Exception) -> Response:
    """Answer a request that is refused."""
    status, headers = 500, {}
    if isinstance(error, RequestError):
        status, headers = error.status, error.headers
    found = encoded(Refusal(RequestProblem(str(error))), status)
    found.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    if status in {408, 413}:  # the rest of the body is not read
        found.headers["connection"] = "close"
    return found


async def gone(_: Request, __: Exception) -> Response:
    """Answer nobody."""
    return Response(status_code=499)


async def failed(_: Request, __: Exception) -> Response:
    """Answer without details; they are logged."""
    return encoded(Refusal(RequestProblem("internal error")), 500)


async def unknown_route(_: Request, error: Exception) -> Response:
    """Answer a request for a path or a method that there is not."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    reason = "method not allowed" if status == 405 else "not found; /openapi.json lists the paths"
    found = encoded(Refusal(RequestProblem(reason)), status)
    found.headers.update((error.headers or {}) if isinstance(error, HTTPException) else {})
    return found


def read_query(text: bytes) -> Query:
    """Return what the parameters of a request ask for."""
    if not text:
        return Query()
    try:
        found = parse_qs(text.decode("ascii"), keep_blank_values=True, max_num_fields=8)
    except ValueError:
        raise RequestError(400, "invalid query") from None
    if unknown := sorted(found.keys() - set(Query._fields)):
        known = ", ".join(sorted(Query._fields))
        raise RequestError(400, f"unknown parameter {unknown[0]!r}; known: {known}")
    flags = {}
    for name in ("explain", "log"):
        value = found.get(name, [None])[-1]
        if value not in {None, "true", "false"}:
            raise RequestError(400, f"{name}={value!r}: expected true or false")
        if value is not None:
            flags[name] = value == "true"
    return Query(found.get("learner", [None])[-1], **flags)


def named(predictor: Predictor) -> list[tuple[bytes, bytes]]:
    """Return the headers that name what predicted."""
    return [
        (b"streamlearn-learner", predictor.learner.encode()),
        (b"streamlearn-version", predictor.version.encode()),
    ]


def header(scope: Scope, wanted: bytes) -> bytes:
    """Return a header of a request; nothing if it has none."""
    for name, value in scope["headers"]:
        if name == wanted:
            return bytes(value)
    return b""


def encoded(value: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(ENCODER.encode(value), status, {"content-type": "application/json"})
