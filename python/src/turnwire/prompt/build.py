"""Short ways to write the messages and parts of a prompt."""

from __future__ import annotations

from typing import Literal, TypeAlias

from turnwire import v1

#: A role by its name in conversation, or as the schema's enum.
RoleLike: TypeAlias = Literal["user", "assistant"] | v1.Role.ValueType

#: A part, or a text that is to become one.
Content: TypeAlias = str | v1.PromptPart

_ROLES: dict[str, v1.Role.ValueType] = {
    "user": v1.Role.ROLE_USER,
    "assistant": v1.Role.ROLE_ASSISTANT,
}


def role(value: RoleLike) -> v1.Role.ValueType:
    """The enum value of a role. Raises ValueError for another word."""
    if isinstance(value, str):
        if value not in _ROLES:
            raise ValueError(f"a role is 'user' or 'assistant', not {value!r}")
        return _ROLES[value]
    return value


def text_part(text: str, *, synthetic: bool | None = None, ignored: bool | None = None) -> v1.PromptPart:
    """A text. ``synthetic``: a program and not the role's author wrote it; ``ignored``: not for the model."""
    return v1.PromptPart(text=v1.TextPart(text=text, synthetic=synthetic, ignored=ignored))


def file_part(url: str, mime: str, *, filename: str | None = None) -> v1.PromptPart:
    """A file by its URL (a data URL holds the content) and media type."""
    return v1.PromptPart(file=v1.FilePart(url=url, mime=mime, filename=filename))


def tool_part(
    call_id: str, name: str, *, input_json: str = "{}", output: str | None = None, error: str | None = None
) -> v1.PromptPart:
    """A finished tool call with its result: an ``output``, or an ``error`` if it failed. ValueError for both."""
    if (output is None) == (error is None):
        raise ValueError("a finished tool call has either an output or an error")
    state = v1.ToolState.TOOL_STATE_COMPLETED if error is None else v1.ToolState.TOOL_STATE_ERROR
    tool = v1.ToolPart(call_id=call_id, name=name, state=state, input_json=input_json, output=output, error=error)
    return v1.PromptPart(tool=tool)


def part(content: Content) -> v1.PromptPart:
    """A part as it is, a string as a text part."""
    return text_part(content) if isinstance(content, str) else content


def message(sender: RoleLike, *content: Content) -> v1.PromptMessage:
    """A prompt message of a role with parts; strings become text parts."""
    return v1.PromptMessage(role=role(sender), parts=map(part, content))


def user_message(*content: Content) -> v1.PromptMessage:
    """A user's prompt message; strings become text parts."""
    return message("user", *content)


def assistant_message(*content: Content) -> v1.PromptMessage:
    """An assistant's prompt message; strings become text parts."""
    return message("assistant", *content)
