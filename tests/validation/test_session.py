"""The session layer: every rule by logs that break exactly it, and what is no fault."""

from __future__ import annotations

import pytest

from tests.builders import assistant, clear, compaction, delta, put, remove, remove_part, revert, text, tool, turn, user
from tests.validation.logs import chained, found, found_in, head, opening, raw, rules_of
from tests.validation.session_cases import ENVELOPES, LOGS, Entries, done, spending, summary_of, usage
from turnwire import v1
from turnwire.log import digest
from turnwire.validation import SessionCheck, rules


@pytest.mark.parametrize(("rule", "entries"), [(rule, each) for rule, logs in LOGS.items() for each in logs])
def test_a_log_that_breaks_one_rule(rule: str, entries: Entries) -> None:
    findings = found(*entries)
    assert rules_of(findings) == [rule]
    (finding,) = findings
    assert finding.severity == rules()[rule].severity
    assert finding.layer == v1.RuleLayer.RULE_LAYER_SESSION
    assert finding.session_id == "s"
    assert 3 <= finding.revision <= 2 + len(entries)
    assert finding.path
    assert finding.text == rules()[rule].title


@pytest.mark.parametrize("rule", ENVELOPES)
def test_an_envelope_that_breaks_one_rule(rule: str) -> None:
    for case in ENVELOPES[rule]:
        assert rules_of(case()) == [rule]


SOUND: dict[str, Entries] = {
    "a reference that points forward in its append": [user("u", turn="t2", before="w"), turn("t2"), user("w")],
    "a parent that comes later": [assistant("a", parent="u"), user("u")],
    "call ids that are exchanged": [
        assistant("a", tool("p", "c1"), tool("q", "c2")),
        assistant("a", tool("p", "c2"), tool("q", "c1")),
    ],
    "a call id of another message": [assistant("a", tool("p", "c1")), assistant("b", tool("q", "c1"))],
    "a call id that is free again": [
        assistant("a", tool("p", "c1")),
        remove_part("p"),
        put("a", tool("q", "c1")),
    ],
    "a message that comes again after its removal": [
        user("u", text("p")),
        remove("u"),
        turn("t2"),
        user("u", text("p"), turn="t2"),
    ],
    "a revert that is cleared": [user("u", text("p")), revert("u"), clear(), put("u", text("p", "x"))],
    "a hidden message that is written": [user("u"), revert("u"), put("u", text("p", "x")), clear()],
    "a message before a reverted one": [user("u"), user("w"), revert("w"), user("x"), put("u", text("p"))],
    "a part before a reverted one": [
        user("u", text("p"), text("q")),
        revert("u", "q"),
        user("w"),
        delta("p", 0, "x"),
    ],
    "deltas to both texts of a call": [
        assistant("a", tool("p")),
        delta("p", 0, raw_input="{ä"),
        delta("p", 0, output="ö"),
        delta("p", 3, raw_input="}"),
        delta("p", 2, output="x"),
    ],
    "a call that ends, and its message": [
        assistant("a", tool("p")),
        put("a", done()),
        assistant("a", completed=True),
    ],
    "a compaction with tail and summary": [
        user("u"),
        user("w", compaction("p", "u")),
        summary_of("w"),
    ],
    "a tail that was put before": [user("x", compaction("p", "y")), user("y", before="x")],
    "usage that is the sum": [spending(usage(3, 1.0), usage(1), usage(2))],
}
SOUND["usage that is the sum"][0].assistant.assistant.usage.tokens.output = 2


@pytest.mark.parametrize("entries", SOUND.values(), ids=SOUND)
def test_what_is_no_fault(entries: Entries) -> None:
    assert rules_of(found(*entries)) == []


def test_a_reference_is_given_up_behind_the_longest_append() -> None:
    near = [assistant("a", parent="u"), *(turn(f"t{at}") for at in range(998)), user("u")]
    assert rules_of(found(*near)) == []
    far = [assistant("a", parent="u"), *(turn(f"t{at}") for at in range(1000)), user("u")]
    assert rules_of(found(*far)) == ["session.ref.message"]


@pytest.mark.parametrize("between", [0, 1, 500])
def test_a_reference_is_given_up_where_another_append_begins(between: int) -> None:
    late = [user("u", turn="z"), *(user(f"u{at}") for at in range(between)), turn("z")]
    (finding,) = found_in(raw(*opening(), *late))
    assert (finding.rule, finding.revision) == ("session.ref.turn", 3)
    assert rules_of(found(*late)) == []


def test_one_damage_is_one_finding() -> None:
    """What was in an entry that is missing or no message is not missed again by what refers to it."""
    whole = raw(*opening(), user("u", text("p")), delta("p", 0, "x"), delta("p", 1, "y"), put("u", text("q")))
    assert rules_of(found_in([*whole[:2], *whole[3:]])) == ["session.revision"]
    assert rules_of(found_in([*whole[:3], *whole[4:]])) == ["session.revision"]
    torn = chained([*whole[:2], whole[2]._replace(payload=whole[2].payload[:-1]), *whole[3:]])
    assert rules_of(found_in(torn)) == ["storage.bytes"]


def test_a_digest_that_is_wrong_by_itself_is_one_finding() -> None:
    whole = raw(*opening(), user("u"), user("v"), user("w"))
    for at in range(len(whole)):
        wrong = [*whole[:at], whole[at]._replace(digest=bytes(32)), *whole[at + 1 :]]
        (finding,) = found_in(wrong, end=head(whole))
        assert (finding.rule, finding.revision) == ("session.digest", at + 1)


def test_digests_that_are_computed_from_a_wrong_one_are_one_finding() -> None:
    """As a store does between the digests that it keeps."""
    whole = raw(*opening(), user("u"), user("v"), user("w"))
    computed = [whole[1]._replace(digest=bytes(32))]
    for entry in whole[2:4]:
        chain = digest.link(computed[-1].digest, entry.revision, entry.recorded_us, entry.field, entry.payload)
        computed.append(entry._replace(digest=chain))
    assert rules_of(found_in([whole[0], *computed, whole[4]])) == ["session.digest"]
    assert rules_of(found_in([whole[0], *computed], end=head(whole[:4]))) == ["session.digest"]
    assert rules_of(found_in([whole[0], *computed], end=head(whole[:3]))) == ["session.digest", "session.head"]


def test_each_damage_is_told() -> None:
    whole = raw(*opening(), *(user(f"u{at}") for at in range(8)))
    other = raw(*opening(), *(user(f"v{at}") for at in range(8)))
    wrong = list(whole)
    wrong[3] = wrong[3]._replace(payload=other[3].payload)
    wrong[5] = wrong[5]._replace(digest=bytes(32))
    wrong[7] = wrong[7]._replace(payload=other[7].payload)
    assert [(each.revision, each.rule) for each in found_in(wrong, end=head(whole))] == [
        (4, "session.digest"),
        (6, "session.digest"),
        (8, "session.digest"),
    ]


def test_many_wrong_digests_beside_each_other_are_one_finding() -> None:
    whole = raw(*opening(), *(user(f"u{at}") for at in range(2000)))
    wrong = [each._replace(digest=bytes(32)) if each.revision in (*range(5, 30), 1500) else each for each in whole]
    many, alone = found_in(wrong, end=head(whole))
    assert (many.rule, many.revision) == ("session.digest", 5)
    assert many.text.startswith("none of 25 digests up to revision 29 matches the entries; many entries were changed")
    assert (alone.rule, alone.revision, alone.text) == ("session.digest", 1500, "the digest does not match the entries")


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("by", [-(10**7), 10**7])
def test_a_time_that_was_changed_is_one_finding(at: int, by: int) -> None:
    whole = raw(*opening(), user("u"), user("w"))
    wrong = [*whole[:at], whole[at]._replace(recorded_us=whole[at].recorded_us + by), *whole[at + 1 :]]
    assert rules_of(found_in(wrong, end=head(whole))) == ["session.digest"]


def test_a_clock_that_runs_back_is_one_warning() -> None:
    whole = raw(*opening(), user("u"), user("w"))
    back = chained([*whole[:2], *(each._replace(recorded_us=each.recorded_us - 10**7) for each in whole[2:])])
    (finding,) = found_in(back)
    assert (finding.rule, finding.revision) == ("session.recorded", 3)
    assert finding.expected.startswith("the one before was recorded at 20")


def test_times_of_a_head_are_told_as_times() -> None:
    whole = raw(*opening())
    end = head(whole)
    end.recorded.FromJsonString("2001-02-03T04:05:06Z")
    (finding,) = found_in(whole, end=end)
    there = head(whole).recorded.ToJsonString()
    assert (finding.path, finding.value) == ("head.recorded", "2001-02-03T04:05:06Z")
    assert finding.expected == f"the last entry has {there}"


def test_without_the_id_of_the_session_the_chain_is_followed_from_its_second_entry_on() -> None:
    whole = raw(*opening(), user("u"))
    run = SessionCheck()
    for entry in [*whole[:2], whole[2]._replace(payload=raw(*opening(), user("w"))[2].payload)]:
        run.entry(entry)
    run.end()
    assert rules_of(run.take()) == ["session.digest"]


def test_entries_without_envelopes_have_no_digests() -> None:
    run = SessionCheck("s", enveloped=False)
    for entry in raw(*opening(), user("u")):
        run.entry(entry._replace(digest=b"", recorded_us=0))
    run.end()
    assert run.take() == []
    assert run.summary() == v1.ValidationSummary(checked=3)


def test_findings_say_where_and_what_is_right() -> None:
    (finding,) = found(user("u", text("p", "häh")), delta("p", 3, "x"))
    assert (finding.revision, finding.path, finding.value, finding.expected) == (4, "delta.offset", "3", "must be 4")
    (finding,) = found(assistant("a", done()), put("a", tool("p")))
    assert (finding.path, finding.value) == ("part.part.tool.state", "TOOL_STATE_RUNNING")
    assert finding.expected == "must stay COMPLETED, which is final"
    (finding,) = found(spending(usage(2), usage(1)))
    assert (finding.value, finding.expected) == (
        "$0.5, input 2, output 1",
        "the 1 steps add up to $0.5, input 1, output 1",
    )


def test_the_schema_is_checked_in_every_payload() -> None:
    broken = user("u", text("p"))
    broken.user.user.parts[0].extra_json = "{"
    (finding,) = found(broken)
    assert (finding.rule, finding.path, finding.value) == (
        "turnwire.json.syntax",
        "user.user.parts[0].extra_json",
        '"{"',
    )
    (finding,) = found(user("u"), put("u", tool("p")))
    assert (finding.rule, finding.path) == ("turnwire.held_by", "part.part.tool")
    (finding,) = found(user("u", text("")))
    assert (finding.rule, finding.path) == ("required", "user.user.parts[0].id")
