"""The description of the interface in OpenAPI 3.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlearn
from streamlearn.serving.http.inference import DATATYPES

if TYPE_CHECKING:
    from streamlearn.serving.http.options import Options

JSON = "application/json"
NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def ref(name: str) -> dict[str, str]:
    """Refer to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def content(schema: Any, kind: str = JSON) -> dict[str, Any]:
    """Describe a body."""
    return {kind: {"schema": schema}}


def response(text: str, schema: Any = None) -> dict[str, Any]:
    """Describe an answer; an error by default."""
    return {"description": text, "content": content(ref("Refusal") if schema is None else schema)}


ERRORS = {
    "400": response("The request is invalid."),
    "404": response("There is no such learner."),
    "408": response("The body took too long."),
    "413": response("The body is too large, or has too many events."),
    "415": response("The body has a Content-Encoding."),
    "503": response("There is no model or no log now, or too many requests are in work."),
}
UNAUTHORIZED = {"401": response("The token is missing or wrong.")}
LEARNER = {"name": "learner", "in": "path", "required": True, "schema": TEXT}
SCHEMAS: dict[str, Any] = {
    "Event": {
        "type": "object",
        "description": "The fields of an event, as in the stream that the model learns from.",
        "additionalProperties": ref("Value"),
    },
    "Value": {
        "description": "A finite number, a text, texts, fields within the field, or null.",
        "anyOf": [
            {"type": ["number", "string", "boolean", "null"]},
            {"type": "array", "items": {"type": ["string", "null"]}},
            {"type": "object", "additionalProperties": ref("Value")},
        ],
    },
    "Contribution": {
        "type": "object",
        "required": ["name", "value", "weight", "contribution"],
        "properties": {
            "name": {"description": "The feature; null for the intercept."},
            "value": NUMBER,
            "weight": NUMBER,
            "contribution": NUMBER,
        },
    },
    "Prediction": {
        "type": "object",
        "required": ["score"],
        "properties": {
            "label": {"description": "The most likely label; null before the first."},
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
            "probabilities": {"type": "object", "additionalProperties": NUMBER},
            "value": {"description": "The predicted number, or one for each target."},
            "score": {"description": "The score, or one for each label or target."},
            "contributions": {"type": "array", "items": ref("Contribution")},
            "learner": TEXT,
            "version": TEXT,
            "arm": {"type": "string", "description": "The arm of the A/B test."},
            "id": TEXT,
        },
    },
    "Refusal": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["reason"],
                "properties": {"reason": TEXT, "field": {"type": ["string", "null"]}},
            }
        },
    },
    "Answer": {
        "type": "object",
        "required": ["predictions"],
        "properties": {
            "learner": TEXT,
            "version": TEXT,
            "predictions": {
                "type": "array",
                "items": {"anyOf": [ref("Prediction"), ref("Refusal")]},
            },
        },
    },
    "Tensor": {
        "type": "object",
        "required": ["name", "shape", "datatype", "data"],
        "properties": {
            "name": TEXT,
            "shape": {"type": "array", "items": {"type": "integer"}},
            "datatype": {"enum": list(DATATYPES)},
            "data": {"type": "array", "items": {}},
        },
    },
    "InferenceRequest": {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": TEXT,
            "inputs": {"type": "array", "items": ref("Tensor"), "minItems": 1},
            "outputs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": TEXT},
                },
                "description": "The outputs that are wanted; none: all.",
            },
        },
    },
    "InferenceResponse": {
        "type": "object",
        "required": ["model_name", "model_version", "outputs"],
        "properties": {
            "id": TEXT,
            "model_name": TEXT,
            "model_version": TEXT,
            "outputs": {"type": "array", "items": ref("Tensor")},
        },
    },
}


def document(options: Options) -> dict[str, Any]:
    """Return the document for a server."""
    errors = ERRORS | (UNAUTHORIZED if options.token is not None else {})
    several = {"type": "array", "items": ref("Event"), "maxItems": options.settings.max_events}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "streamlearn", "version": streamlearn.__version__},
        "paths": {
            "/v1/predict": {
                "post": {
                    "operationId": "predict",
                    "summary": "Predict an event, a list of events, or lines of events.",
                    "parameters": [
                        {"name": "learner", "in": "query", "schema": TEXT},
                        {
                            "name": "explain",
                            "in": "query",
                            "description": "Whether to add what each feature contributes.",
                            "schema": {"type": "boolean", "default": False},
                        },
                        {
                            "name": "log",
                            "in": "query",
                            "description": "Whether to log the prediction, so that it is learned.",
                            "schema": {"type": "boolean", "default": True},
                        },
                    ],
                    "requestBody": {
                        "required": True,
                        "content": content({"oneOf": [ref("Event"), several]})
                        | content(TEXT, "application/x-ndjson"),
                    },
                    "responses": {
                        "200": {
                            "description": "The predictions, in the order of the events.",
                            "content": content({"anyOf": [ref("Answer"), ref("Prediction")]})
                            | content(TEXT, "application/x-ndjson"),
                        },
                        "422": response("The event, or the JSON of a list, is invalid."),
                        **errors,
                    },
                }
            },
            "/v1/learners": get("learners", "List the learners and their versions.", errors),
            "/v2": get("server", "Describe the server (Open Inference Protocol).", errors),
            "/v2/health/live": get("live", "Tell whether the process answers.", {}),
            "/v2/health/ready": get(
                "ready",
                "Tell whether there is a model, and no shutdown.",
                {"503": response("Not ready.", {"type": "object"})},
            ),
            "/v2/models/{learner}": get("model", "Describe a model.", errors, LEARNER),
            "/v2/models/{learner}/ready": get(
                "modelReady", "Tell whether there is a model of this name.", errors, LEARNER
            ),
            "/v2/models/{learner}/infer": {
                "post": {
                    "operationId": "infer",
                    "summary": "Predict events given as one input per field.",
                    "parameters": [LEARNER],
                    "requestBody": {"required": True, "content": content(ref("InferenceRequest"))},
                    "responses": {
                        "200": response("The outputs.", ref("InferenceResponse")),
                        **errors,
                    },
                }
            },
        },
        "components": {"schemas": SCHEMAS},
    }
    if options.token is not None:
        found["components"] = {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        }
        found["security"] = [{"token": []}]
    return found


def get(name: str, text: str, errors: Any, *parameters: Any) -> dict[str, Any]:
    """Describe a GET of an object."""
    return {
        "get": {
            "operationId": name,
            "summary": text,
            "parameters": list(parameters),
            "responses": {"200": response("The answer.", {"type": "object"}), **errors},
        }
    }
