"""What the makers of the several kinds of part share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnwire import v1
from turnwire.formats.fields import Fields
from turnwire.formats.jsonlit import Json, Node
from turnwire.formats.opencode.shape_parts import OriginalIds, Owner

USER = "user"
ASSISTANT = "assistant"

# Keys of provider metadata whose value binds the content: Anthropic's signature and redacted reasoning, OpenAI's
# encrypted reasoning, Google's thought signature.
_BINDING = frozenset({"signature", "redactedData", "reasoningEncryptedContent", "encryptedContent", "thoughtSignature"})


# What a maker gives: the part, or None if an extension must hold it, and the members that it took as documents: by key
# of the part, or by key of its state.
Documents = dict[tuple[str, ...], str]
Made = tuple[v1.PromptPart | None, Documents]


@dataclass(slots=True)
class Context:
    """What the parts of one message share."""

    fields: Fields
    role: str
    owner: Owner
    #: The ids of messages as they stand in the source, by those in Turnwire.
    ids: OriginalIds
    #: The messages that may be referred to: their ids in Turnwire, by those in the source.
    earlier: Mapping[str, str]
    calls: set[str] = field(default_factory=set[str])


def provider_of(
    members: dict[str, Node], tree: dict[str, Json], context: Context
) -> tuple[v1.ProviderMetadata | None, Documents]:
    """The provider metadata of a part, and the document that it is; ``members`` are those of `members_of`."""
    if "metadata" not in members or tree.get("metadata") is None:
        return None, {}
    found = members["metadata"]
    text = context.fields.document(found, "/metadata", obj=True)
    if not text:
        return None, {}
    return v1.ProviderMetadata(metadata_json=text, signed=_binds(found.value)), {("metadata",): text}


def _binds(value: Json, depth: int = 3) -> bool:
    if not isinstance(value, dict) or depth == 0:
        return False
    return any(bool(item) if key in _BINDING else _binds(item, depth - 1) for key, item in value.items())


def members_of(node: Node, at: str, context: Context) -> dict[str, Node]:
    """The members of an object at the pointer ``at``; tells the report of keys that stand there twice."""
    return node.members(lambda key: context.fields.note(at, "a key stands there more than once, the last one counts"))


def period_of(value: Json, at: str, context: Context) -> v1.PartTime | None:
    """The time of a part; None if there is none."""
    if not isinstance(value, dict):
        return None
    return v1.PartTime(
        start=context.fields.time(value.get("start"), f"{at}/start"),
        end=context.fields.time(value.get("end"), f"{at}/end"),
    )


def model_ref(value: Json, at: str, fields: Fields) -> v1.ModelRef | None:
    """A model object ``{providerID, modelID}``; None if there is none."""
    if not isinstance(value, dict):
        return None
    return v1.ModelRef(
        provider_id=fields.name(value.get("providerID"), f"{at}/providerID", "unknown"),
        model_id=fields.name(value.get("modelID"), f"{at}/modelID", "unknown"),
    )


def usage(tree: dict[str, Json], fields: Fields) -> v1.Usage | None:
    """The usage of an object with ``cost`` and ``tokens``; None if it has neither."""
    cost = fields.cost(tree.get("cost"), "/cost")
    found = tree.get("tokens")
    if not isinstance(found, dict):
        return None if cost is None else v1.Usage(cost=cost)
    cache = found.get("cache")
    tokens = v1.Tokens(
        total=fields.count(found.get("total"), "/tokens/total"),
        input=fields.count(found.get("input"), "/tokens/input") or 0,
        output=fields.count(found.get("output"), "/tokens/output") or 0,
        reasoning=fields.count(found.get("reasoning"), "/tokens/reasoning") or 0,
    )
    if isinstance(cache, dict):
        tokens.cache.read = fields.count(cache.get("read"), "/tokens/cache/read") or 0
        tokens.cache.write = fields.count(cache.get("write"), "/tokens/cache/write") or 0
        tokens.cache.SetInParent()
    return v1.Usage(cost=cost, tokens=tokens)
