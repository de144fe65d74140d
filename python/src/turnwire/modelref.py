"""A model by its provider and its own name, also as one text."""

from __future__ import annotations

from typing import TypeAlias

from turnwire import v1

#: A model, or ``"provider/model"``; the provider ends at the first slash.
ModelLike: TypeAlias = v1.ModelRef | str


def model_ref(model: ModelLike) -> v1.ModelRef:
    """A model as the schema has it. Raises ValueError for a text without a provider."""
    if isinstance(model, v1.ModelRef):
        return model
    provider, slash, name = model.partition("/")
    if not (provider and slash and name):
        raise ValueError('a model is "provider/model", for example "anthropic/claude-sonnet-4-5"')
    return v1.ModelRef(provider_id=provider, model_id=name)
