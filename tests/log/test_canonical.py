"""The bytes of parts that are stored and hashed: those of the runtime, but for the order of maps."""

from __future__ import annotations

from hypothesis import given, settings

from tests.strategies import messages
from turnwire import v1
from turnwire.log import canonical


@given(messages(v1.PromptPart))
@settings(deadline=None)
def test_a_part_without_maps_is_as_the_runtime_writes_it(part: v1.PromptPart) -> None:
    written = canonical.part(part)
    assert v1.PromptPart.FromString(written) == part
    if len(part.retry.failure.api.response_headers) < 2:
        assert written == part.SerializeToString(deterministic=True)


def test_keys_are_in_the_order_of_their_bytes() -> None:
    headers = {"retry-after-ms": "1", "retry-after": "2", "": "3", "ﬀ": "4", "😀": "5"}
    failure = v1.Failure(api=v1.ApiFailure(message="m", response_headers=headers, url=""))
    part = v1.PromptPart(id="p", retry=v1.RetryPart(attempt=2, failure=failure))
    part.retry.created.FromSeconds(3)
    part.MergeFromString(b"\xa2\x06\x01x")
    written = canonical.part(part)
    assert v1.PromptPart.FromString(written) == part
    assert written.endswith(b"\xa2\x06\x01x")
    places = [
        written.index(b"\x0a" + bytes([len(key.encode())]) + key.encode() + b"\x12\x01") for key in sorted(headers)
    ]
    assert places == sorted(places)
