"""The rules of the session layer: what can be said of an entry by the entries before it."""

from __future__ import annotations

from typing import Final

from turnwire.validation.rule import ERROR, NOTE, SESSION, WARNING, Rule

_TABLE: Final = (
    # The log
    (
        "revision",
        ERROR,
        "an entry is missing, or stands twice or out of order",
        "Revisions are dense: 1, 2, 3 and so on.",
    ),
    (
        "digest",
        ERROR,
        "the digest does not match the entries",
        "Each digest covers all entries up to its own, so that a single byte that changed shows. A SQLite store "
        "keeps the digest of every 64th entry and of the head; the change is at this entry or since the last one "
        "that is kept.",
    ),
    (
        "head",
        ERROR,
        "the head that is stored is not the last entry",
        "What a session says of its end must be what its log says: revision, digest, time of recording.",
    ),
    (
        "recorded",
        WARNING,
        "an entry was recorded before the one before it",
        "The server's clock never runs back in a log; the order is that of the revisions in any case.",
    ),
    (
        "first",
        ERROR,
        "the log does not begin with the session's properties",
        "Revision 1 is the properties with which the session was created.",
    ),
    (
        "forked_from",
        ERROR,
        "properties after revision 1 name a fork's parent",
        "Only the server writes it, at revision 1 of a fork.",
    ),
    # References
    (
        "ref.turn",
        ERROR,
        "there is no such turn",
        "A turn that is named must be in the log: before, or in the same append (1,000 entries at most).",
    ),
    (
        "ref.message",
        ERROR,
        "there is no such message",
        "A message that is named must be in the log: before, or in the same append (1,000 entries at most).",
    ),
    (
        "ref.part",
        ERROR,
        "there is no such part",
        "A part that is named must be in the log, and in the message that is meant.",
    ),
    (
        "ref.prompt",
        ERROR,
        "there is no such prompt record",
        "A prompt record that is named must be in the log; one that another is based on, before it.",
    ),
    (
        "ref.context",
        ERROR,
        "there is no such prompt context",
        "The context of a prompt record is an entry before it, found by its digest.",
    ),
    (
        "ref.revision",
        ERROR,
        "a prompt is based on a revision that was not there yet",
        "What a model saw can only come from entries before.",
    ),
    (
        "ref.gone",
        ERROR,
        "what is named was taken out of the history",
        "After a removal, or a revert that was made final, no server takes anything more for it.",
    ),
    (
        "ref.self",
        ERROR,
        "it names itself",
        "Nothing comes before itself, and nothing answers itself.",
    ),
    (
        "orphan_part",
        ERROR,
        "a part of a message that is not there",
        "A part is put into a message of the log, and is never shown without it.",
    ),
    # Messages and parts
    (
        "written_once",
        ERROR,
        "what is written once stands twice",
        "Turns, prompt records, prompt contexts and renderings are immutable; a server answers an equal one with "
        "`existing`.",
    ),
    (
        "role",
        ERROR,
        "a message changes its role",
        "The ids of both roles are one space.",
    ),
    (
        "turn_changed",
        WARNING,
        "a message changes its turn",
        "A server takes it, and the last put counts. But a message is of one turn: a changed setting is a new turn "
        "with messages of its own.",
    ),
    (
        "parent_role",
        ERROR,
        "the parent is no user message",
        "An assistant message answers a user message.",
    ),
    (
        "parent_turn",
        WARNING,
        "an answer has another turn than its question",
        "The answer was made under the settings that the question was sent with.",
    ),
    (
        "place",
        ERROR,
        "what has its place is given another",
        "`before_id` goes with the first put only.",
    ),
    (
        "part_twice",
        ERROR,
        "one put has a part twice",
        "The ids of parts are unique in a session.",
    ),
    (
        "part_moved",
        ERROR,
        "a part changes its message",
        "The ids of parts are unique in a session.",
    ),
    (
        "part_removed",
        ERROR,
        "a part that was removed is put again",
        "The id of a part is never used again.",
    ),
    (
        "part_kind",
        WARNING,
        "a part changes its kind",
        "A part that is put again is the same piece of content in a later state.",
    ),
    (
        "call_id",
        ERROR,
        "two tool parts of one message have one call id",
        "A result finds its call by this id alone.",
    ),
    # Deltas
    (
        "delta.target",
        ERROR,
        "a delta for what the part does not have",
        "Texts and reasoning take text, tool calls raw input and output.",
    ),
    (
        "delta.sealed",
        ERROR,
        "a delta for a part that has ended",
        "A part is sealed when its text, its call or its message ends.",
    ),
    (
        "delta.offset",
        ERROR,
        "a delta does not begin where the text ends",
        "Else some of the text is missing, or stands twice.",
    ),
    # Tools and times
    (
        "tool.left",
        WARNING,
        "a tool call leaves a state that is final",
        "A server takes it, and the last put counts. But a call that has completed or failed never runs again, and "
        "stays what it came to; a new try is a new call.",
    ),
    (
        "tool.back",
        WARNING,
        "a running tool call becomes pending",
        "States go from pending over running to completed or error.",
    ),
    (
        "tool.content",
        WARNING,
        "a tool call has what its state cannot have",
        "An error text only in state ERROR, an output not while pending and always when completed, an end or a "
        "mark as compacted only when final.",
    ),
    (
        "tool.open",
        NOTE,
        "a message has ended and a tool call in it has not",
        "The run was killed. A renderer sends an error result in its place.",
    ),
    (
        "times",
        WARNING,
        "it ended before it began",
        "Both times are of one writer's clock.",
    ),
    # Reverts, compactions, usage
    (
        "revert.open",
        ERROR,
        "a revert while another is open",
        "At most one revert is open.",
    ),
    (
        "revert.none",
        ERROR,
        "a revert is cleared and none is open",
        "The clearing belongs to an open revert.",
    ),
    (
        "compaction.tail",
        WARNING,
        "the tail of a compaction is not before it",
        "The tail begins at a message that is kept word for word, from the history before the compaction. Such a "
        "tail counts as unset.",
    ),
    (
        "compaction.summary",
        WARNING,
        "a summary of no compaction",
        "The parent of a summary is the message that holds the compaction part; else no prompt begins with it.",
    ),
    (
        "usage.sum",
        WARNING,
        "the usage of a message is not the sum of its steps",
        "`usage` says what all model calls of the message took together.",
    ),
    (
        "usage.last_step",
        NOTE,
        "the usage of a message is that of its last step",
        "Some runtimes (opencode) count the tokens of the last model call only, where a message had several.",
    ),
)

#: All rules of the layer.
SESSION_RULES: Final = tuple(
    Rule(f"session.{name}", SESSION, severity, title, explanation) for name, severity, title, explanation in _TABLE
)
