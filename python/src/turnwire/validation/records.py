"""The rules about what is written once and stands beside the history: properties, turns, prompts and theirs."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from turnwire import v1
from turnwire.validation.looking import Looking
from turnwire.validation.references import CONTEXT, PROMPT, RENDERING, TURN

_BASE: Final = frozenset(("base_prompt_id",))
_NONE: Final[frozenset[str]] = frozenset()


class Records(Looking):
    """The entries that change nothing of the history."""

    def properties(self, revision: int, properties: v1.SessionProperties) -> None:
        if revision > 1 and properties.HasField("forked_from"):
            self.found.add(
                "session.forked_from", revision=revision, path="session.forked_from", expected="must be unset"
            )

    def turn(self, revision: int, turn: v1.Turn) -> None:
        self._record(revision, TURN, turn.id, "turn.id")

    def context(self, revision: int, payload: bytes) -> None:
        self._record(revision, CONTEXT, sha256(payload).hexdigest(), "context")

    def rendering(self, revision: int, rendering: v1.PromptRendering, payload: bytes) -> None:
        self._record(revision, RENDERING, sha256(payload).hexdigest(), "rendering")
        self.references.check(revision, "rendering", rendering, _NONE)

    def prompt(self, revision: int, record: v1.PromptRecord) -> None:
        if record.base_revision >= revision:
            right = f"must be at most {revision - 1}"
            self.wrong("session.ref.revision", revision, "prompt.base_revision", record.base_revision, right)
        if record.base_prompt_id and not self.references.there(v1.RefKind.REF_KIND_PROMPT, record.base_prompt_id):
            self.references.unknown("session.ref.prompt", revision, "prompt.base_prompt_id", record.base_prompt_id)
        if record.context_digest and CONTEXT + record.context_digest.hex() not in self.rows.records:
            digest = record.context_digest.hex()
            self.references.unknown("session.ref.context", revision, "prompt.context_digest", digest)
        self._record(revision, PROMPT, record.id, "prompt.id")
        self.references.check(revision, "prompt", record, _BASE)

    def _record(self, revision: int, space: str, id: str, path: str) -> None:
        if not id:
            return
        there = self.rows.records.get(space + id)
        if there is not None:
            self.wrong("session.written_once", revision, path, id, f"it stands at revision {there}")
        else:
            self.rows.records.put(space + id, revision)
