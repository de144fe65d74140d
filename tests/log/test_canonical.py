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


def test_unknown_fields_have_their_tags_in_the_fewest_bytes() -> None:
    long = (
        b"\xa0\x86\x80\x00\x81\x00"
        + b"\xa3\x86\x00\x08\x00\xa4\x86\x80\x00"
        + b"\xa5\x86\x00abcd"
        + b"\xa1\x86\x00abcdefgh"
    )
    short = b"\xa0\x06\x81\x00" + b"\xa3\x06\x08\x00\xa4\x86\x80\x00" + b"\xa5\x06abcd" + b"\xa1\x06abcdefgh"
    part = v1.PromptPart(text=v1.TextPart(text="ä\0"))
    part.text.MergeFromString(long + b"\xa2\x86\x00\x02\x80\x00")
    part.MergeFromString(long)
    inside = v1.TextPart(text="ä\0").SerializeToString() + short + b"\xa2\x06\x02\x80\x00"
    assert canonical.part(part) == b"\x1a" + bytes([len(inside)]) + inside + short


def test_what_looks_like_a_long_tag_stays() -> None:
    part = v1.PromptPart(id="p", text=v1.TextPart(text="ä\0ö\0"))
    assert canonical.may_have_long_tags(part.SerializeToString())
    assert canonical.part(part) == part.SerializeToString()
