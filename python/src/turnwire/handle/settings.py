"""The settings of a turn: what is given, and for the rest what the last turn of the same agent had."""

from __future__ import annotations

from collections.abc import Mapping

from turnwire import v1
from turnwire.calls.given import built, fill
from turnwire.calls.sessions import Keep
from turnwire.modelref import ModelLike, model_ref


def merged(
    last: v1.TurnRequest | None,
    agent: str | None,
    model: ModelLike | None,
    variant: str | Keep | None,
    format: v1.OutputFormat | Keep | None,
    system: str | Keep | None,
    tools: Mapping[str, bool] | Keep,
) -> v1.TurnRequest:
    """The settings of a new turn: those of ``last`` with what is given in their place.

    The variant belongs to the model: with another model the last variant does not go on. Raises ValueError when
    neither tells the agent or the model.
    """
    settings = v1.TurnRequest()
    if last is not None:
        settings.CopyFrom(last)
    fill(settings, agent=agent)
    if model is not None:
        wanted = model_ref(model)
        if wanted != settings.model:
            settings.ClearField("variant")
        settings.model.CopyFrom(wanted)
    if not settings.agent or not settings.HasField("model"):
        whose = f"the agent {agent!r}" if agent is not None else "this session"
        raise ValueError(f"{whose} has had no turn whose settings could go on: give an agent and a model")
    given = built(
        v1.TurnRequest,
        variant=None if isinstance(variant, Keep) else variant,
        format=None if isinstance(format, Keep) else format,
        system=None if isinstance(system, Keep) else system,
        tools=None if isinstance(tools, Keep) else tools,
    )
    if not isinstance(variant, Keep):
        settings.ClearField("variant")
    if not isinstance(format, Keep):
        settings.ClearField("format")
    if not isinstance(system, Keep):
        settings.ClearField("system")
    if not isinstance(tools, Keep):
        settings.ClearField("tools")
    settings.MergeFrom(given)
    return settings
