"""Hypothesis strategies for whole sessions: legal stored messages that could follow one another."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import messages
from turnwire import v1
from turnwire.prompt import History, Item, assemble

TARGET = v1.ModelRef(provider_id="acme", model_id="m-1")
_OTHER = v1.ModelRef(provider_id="other", model_id="m-2")
_METADATA = (
    '{"anthropic":{"signature":"c2ln"}}',
    '{"anthropic":{"redactedData":"eHh4"}}',
    '{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"ZW5j"}}',
    '{"google":{"thoughtSignature":"c2ln"}}',
    '{"google":{"thoughtSignature":"g"}}',
    '{"openai":{"reasoningEncryptedContent":"ZW5j"}}',
    "{}",
)
_URLS = (
    "data:image/png;base64,iVBORw0KGgo=",
    "data:image/jpg;base64,iVBORw0KGgo=",
    "data:image/bmp;base64,Qk0=",
    "data:application/pdf;base64,JVBERi0=",
    "data:audio/wav;base64,UklGRg==",
    "data:video/mp4;base64,AAAA",
    "data:text/plain;base64,aGVsbG8=",
    "data:text/plain,",
    "data:;base64,AAAA",
    "data:image/png;base64,?",
    "data:image/svg+xml,%3Csvg/%3E",
    "https://example.org/a.png",
    "https://example.org/a.pdf",
    "file:///tmp/a.png",
)
_USER = messages(v1.User, stored=True)
_ASSISTANT = messages(v1.Assistant, stored=True)


@st.composite
def prompts(draw: st.DrawFn) -> tuple[Item, ...]:
    """The prompt of a session of up to four messages."""
    session = draw(st.lists(_USER | _ASSISTANT, min_size=1, max_size=4))
    for place, message in enumerate(session):
        message.id = f"M{place}"
        message.turn_id = "T"
        if isinstance(message, v1.Assistant):
            message.run.model.CopyFrom(draw(st.sampled_from([TARGET, _OTHER])))
            if place and draw(st.booleans()):
                message.parent_id = f"M{draw(st.integers(0, place - 1))}"
        for at, part in enumerate(message.parts):
            part.id = f"P{place}.{at}"
            likely(draw, part)
    return assemble(History(session, turns=[v1.Turn(id="T")]), "T").items


def likely(draw: st.DrawFn, part: v1.PromptPart) -> None:
    """Now and then put what really occurs in the place of what could."""
    kind = part.WhichOneof("kind")
    content = getattr(part, kind) if kind else None
    if isinstance(content, v1.TextPart | v1.ReasoningPart | v1.ToolPart) and draw(st.booleans()):
        content.provider.metadata_json = draw(st.sampled_from(_METADATA))
        content.provider.signed = draw(st.booleans())
        if draw(st.booleans()):
            content.provider.model.CopyFrom(draw(st.sampled_from([TARGET, _OTHER])))
        else:
            content.provider.ClearField("model")
    if isinstance(content, v1.FilePart):
        _file(draw, content)
    if isinstance(content, v1.ToolPart):
        content.call_id = draw(st.sampled_from([content.call_id, f"call_{part.id[-1]}", f"a/b:{part.id[-1]}"]))
        for attachment in content.attachments:
            _file(draw, attachment.file)


def _file(draw: st.DrawFn, file: v1.FilePart) -> None:
    file.url = draw(st.sampled_from([file.url, *_URLS]))
    file.mime = draw(st.sampled_from([file.mime, "image/png", "application/pdf", "text/plain", ""]))
