"""opencode's errors and Turnwire's failures, both ways.

opencode writes ``{name, data: {message, …}}``. A name that the schema does not know becomes an unknown failure.
"""

from __future__ import annotations

from turnwire import v1
from turnwire.formats.fields import INT32, Fields
from turnwire.formats.jsonlit import Json, integer

_UNKNOWN = "UnknownError"


def to_failure(fields: Fields, error: Json, at: str) -> v1.Failure | None:
    """The failure for an ``error`` object at the pointer ``at``; None if there is none."""
    if error is None:
        return None
    if not isinstance(error, dict):
        fields.note(at, "not an error object")
        return v1.Failure(unknown=v1.UnknownFailure())
    found = error.get("data")
    data = found if isinstance(found, dict) else {}
    at_data = f"{at}/data"
    name = fields.text(error.get("name"), f"{at}/name")
    said = fields.text(data.get("message"), f"{at_data}/message")
    message = said or ""
    match name:
        case "APIError":
            return v1.Failure(api=_api(fields, data, message, at_data))
        case "ProviderAuthError":
            provider = fields.text(data.get("providerID"), f"{at_data}/providerID", 256) or ""
            return v1.Failure(auth=v1.AuthFailure(provider_id=provider, message=message))
        case "MessageAbortedError":
            return v1.Failure(aborted=v1.AbortedFailure(message=message))
        case "MessageOutputLengthError":
            return v1.Failure(output_length=v1.OutputLengthFailure(message=said))
        case "StructuredOutputError":
            retries = fields.count(data.get("retries"), f"{at_data}/retries", INT32)
            return v1.Failure(structured_output=v1.StructuredOutputFailure(message=message, retries=retries))
        case "ContextOverflowError":
            body = fields.text(data.get("responseBody"), f"{at_data}/responseBody")
            return v1.Failure(context_overflow=v1.ContextOverflowFailure(message=message, response_body=body))
        case "ContentFilterError":
            return v1.Failure(content_filter=v1.ContentFilterFailure(message=message))
        case _:
            named = None if name == _UNKNOWN else name
            return v1.Failure(unknown=v1.UnknownFailure(message=message, name=named))


def _api(fields: Fields, data: dict[str, Json], message: str, at: str) -> v1.ApiFailure:
    headers = data.get("responseHeaders")
    metadata = data.get("metadata")
    return v1.ApiFailure(
        message=message,
        status_code=fields.count(data.get("statusCode"), f"{at}/statusCode", 599, 100),
        retryable=fields.flag(data.get("isRetryable"), f"{at}/isRetryable") or False,
        response_headers=_texts(fields, headers, f"{at}/responseHeaders"),
        response_body=fields.text(data.get("responseBody"), f"{at}/responseBody"),
        url=fields.text(metadata.get("url"), f"{at}/metadata/url") if isinstance(metadata, dict) else None,
    )


def _texts(fields: Fields, value: Json, at: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, item in value.items() if isinstance(value, dict) else ():
        name = fields.text(key, at)
        text = fields.text(item, at)
        if name is not None and text is not None:
            texts[name] = text
    return texts


def to_error(failure: v1.Failure) -> Json:
    """The ``error`` object for a failure."""
    match failure.WhichOneof("kind"):
        case "api":
            return {"name": "APIError", "data": _api_data(failure.api)}
        case "auth":
            data: dict[str, Json] = {
                "providerID": failure.auth.provider_id,
                "message": failure.auth.message,
            }
            return {"name": "ProviderAuthError", "data": data}
        case "aborted":
            return {"name": "MessageAbortedError", "data": {"message": failure.aborted.message}}
        case "output_length":
            length = failure.output_length
            return {
                "name": "MessageOutputLengthError",
                "data": {"message": length.message} if length.HasField("message") else {},
            }
        case "structured_output":
            structured = failure.structured_output
            data = {"message": structured.message}
            if structured.HasField("retries"):
                data["retries"] = integer(structured.retries)
            return {"name": "StructuredOutputError", "data": data}
        case "context_overflow":
            overflow = failure.context_overflow
            data = {"message": overflow.message}
            if overflow.HasField("response_body"):
                data["responseBody"] = overflow.response_body
            return {"name": "ContextOverflowError", "data": data}
        case "content_filter":
            return {"name": "ContentFilterError", "data": {"message": failure.content_filter.message}}
        case _:
            unknown = failure.unknown
            return {
                "name": unknown.name if unknown.HasField("name") else _UNKNOWN,
                "data": {"message": unknown.message},
            }


def _api_data(api: v1.ApiFailure) -> Json:
    data: dict[str, Json] = {"message": api.message}
    if api.HasField("status_code"):
        data["statusCode"] = integer(api.status_code)
    data["isRetryable"] = api.retryable
    if api.response_headers:
        data["responseHeaders"] = dict(api.response_headers)
    if api.HasField("response_body"):
        data["responseBody"] = api.response_body
    if api.HasField("url"):
        data["metadata"] = {"url": api.url}
    return data
