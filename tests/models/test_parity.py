"""The dataclasses say the same as the messages that they are made from, both ways."""

from __future__ import annotations

import betterproto2
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strategies import messages
from turnwire import convert, models, v1

_NAMES = sorted(name for name, value in vars(v1).items() if isinstance(value, type) and issubclass(value, Message))


def _to_the_microsecond(message: Message) -> None:
    """Cut the times of a message, all the way down, as the dataclasses do."""
    if isinstance(message, Timestamp):
        message.nanos -= message.nanos % 1000
        return
    for field, value in message.ListFields():
        if field.type != FieldDescriptor.TYPE_MESSAGE or (field.message_type.GetOptions().map_entry):
            continue
        for each in value if field.is_repeated else [value]:
            _to_the_microsecond(each)


@pytest.mark.parametrize(
    "name", ["Assistant", "User", "Turn", "Entry", "SessionProperties", "PromptRecord", "PromptItem"]
)
@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_there_and_back_is_the_same_message(name: str, data: st.DataObject) -> None:
    message = data.draw(messages(getattr(v1, name)))
    _to_the_microsecond(message)
    assert convert.from_model(convert.to_model(message)) == message


def test_every_message_has_a_dataclass_with_the_same_fields() -> None:
    for name in _NAMES:
        fields = {field.name for field in getattr(v1, name).DESCRIPTOR.fields}
        assert {field.rstrip("_") for field in getattr(models, name).__dataclass_fields__} - {
            "_unknown_fields"
        } == fields, name


def test_absent_stays_absent_and_zero_stays_zero() -> None:
    assert convert.to_model(v1.Usage()).cost is None  # type: ignore[attr-defined]
    assert convert.to_model(v1.Usage(cost=0)).cost == 0  # type: ignore[attr-defined]
    assert convert.from_model(models.Usage(cost=0.0)) == v1.Usage(cost=0)


def test_json_documents_stay_the_text_they_were() -> None:
    text = '{"b":1.0,"a":[1,653247040368672768],"s":"\\ud83d"}'
    model = convert.to_model(v1.ToolPart(call_id="c", name="t", state=2, input_json=text))
    assert isinstance(model, models.ToolPart)
    assert model.input_json == text


def test_a_message_of_another_package_has_no_dataclass() -> None:
    with pytest.raises(KeyError, match=r"google\.protobuf\.Timestamp"):
        convert.to_model(Timestamp())


def test_truncated_bytes_never_reach_the_dataclasses() -> None:
    whole = v1.TextPart(text="abcdef").SerializeToString()
    assert isinstance(models.TextPart.parse(whole), betterproto2.Message)
    with pytest.raises(Exception, match="Error parsing message"):
        v1.TextPart.FromString(whole[:-1])
