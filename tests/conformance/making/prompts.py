"""Vectors of mutation and render."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.making import trees
from tests.conformance.making.history import prompt_digest
from turnwire import v1
from turnwire.conformance import v1 as conformance

_FATES = {"live": "FATE_LIVE", "compacted": "FATE_COMPACTED", "removed": "FATE_REMOVED"}


def mutation(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``items``, ``base_prompt``, ``mutations``, ``fates`` (``message ID`` or ``part ID``: fate); expected is
    ``prompt``, the items, or ``refused``."""
    request = conformance.MutationRequest(
        items=[item(each) for each in tree["items"]],
        base_prompt_id=tree.get("base_prompt"),
        mutations=[edit(each) for each in tree["mutations"]],
    )
    for anchor, fate in tree.get("fates", {}).items():
        kind, _, anchor_id = anchor.partition(" ")
        request.fates.add(**{f"{kind}_id": anchor_id}, fate=conformance.Fate.Value(_FATES[fate]))
    expected = conformance.Response()
    if "refused" in tree:
        expected.refused.CopyFrom(trees.refusal(tree["refused"]))
    else:
        expected.mutation.items.extend(item(each) for each in tree["prompt"])
        expected.mutation.digest = prompt_digest(each.message for each in expected.mutation.items)
    return conformance.Request(mutation=request), expected


def edit(tree: Any) -> v1.Mutation:
    """A mutation. Roles are written in short; ``unknown`` is what a later schema has written into it."""
    made = trees.message(v1.Mutation, trees.spelled({key: tree[key] for key in tree if key != "unknown"}))
    trees.add_unknown(made, tree.get("unknown", {}))
    return made


def item(tree: Any) -> v1.PromptItem:
    """``user: ID`` or ``assistant: ID`` is a stored message, ``7: ID`` one of a role that this schema does not have;
    ``user: 0`` one that mutation 0 made, of ``prompt_id`` if that is given; with ``parts``, ``facts`` and ``unknown``.
    """
    (role,) = (key for key in tree if key in trees.ROLES or isinstance(key, int))
    made = v1.PromptItem(message=message({"role": role, "parts": tree["parts"]}))
    if isinstance(tree[role], int):
        made.mutation.CopyFrom(v1.MutationOrigin(index=tree[role], prompt_id=tree.get("prompt_id")))
    else:
        made.message_id = tree[role]
    if "facts" in tree:
        made.facts.CopyFrom(trees.message(v1.AssistantFacts, tree["facts"]))
    trees.add_unknown(made, tree.get("unknown", {}))
    return made


def message(tree: Any) -> v1.PromptMessage:
    """A prompt message, whose role is written in short."""
    return trees.message(v1.PromptMessage, trees.spelled(tree))


def render(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``items``, ``dialect``, ``model``, ``context``, ``options``, ``profile``; expected is ``body`` as a tree,
    or as the very text, and ``changes`` (rule, message, part), or ``refused``."""
    provider_id, _, model_id = tree["model"].partition("/")
    request = conformance.RenderRequest(
        items=[item(each) for each in tree["items"]],
        dialect=v1.Dialect.Value("DIALECT_" + tree["dialect"].upper().replace("-", "_")),
        model=v1.ModelRef(provider_id=provider_id, model_id=model_id),
        profile=tree.get("profile", ""),
    )
    if "context" in tree:
        request.context.CopyFrom(trees.message(v1.PromptContext, tree["context"]))
    if "options" in tree:
        request.options.CopyFrom(trees.message(v1.RenderOptions, tree["options"]))
    expected = conformance.Response()
    if "refused" in tree:
        expected.refused.CopyFrom(trees.refusal(tree["refused"]))
        return conformance.Request(render=request), expected
    body = tree["body"]
    expected.render.body = (
        body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    )
    for rule, *place in tree.get("changes", []):
        number = v1.RenderRule.Value(f"RENDER_RULE_{rule}")
        expected.render.changes.add(rule=number, **dict(zip(("message_id", "part_id"), place, strict=False)))
    return conformance.Request(render=request), expected
