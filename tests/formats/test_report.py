"""The report of an import."""

from __future__ import annotations

from turnwire.formats import Outcome, Report


def filled() -> Report:
    report = Report()
    report.count(Outcome.IMPORTED, "session")
    report.count(Outcome.IMPORTED, "part", 7)
    report.count(Outcome.UNCHANGED, "summary", 2)
    report.repaired("part", "/messages/1/parts/0", "/text", "lone surrogates", source="a.json", id="prt_1")
    report.repaired("part", "/messages/1/parts/0", "/time", "no time", source="a.json", id="prt_1")
    report.refused("message", "/messages/2", "cut", source="a.json")
    return report


def test_an_object_counts_as_repaired_once() -> None:
    report = filled()
    assert report.total(Outcome.REPAIRED, "part") == 1
    assert len(report.notes) == 3
    report.repaired("part", "/messages/1/parts/0", "/text", "again", source="b.json")
    assert report.total(Outcome.REPAIRED) == 2


def test_a_report_is_complete_if_nothing_was_refused() -> None:
    assert not filled().complete
    assert Report().complete


def test_for_scripts() -> None:
    assert filled().to_json() == {
        "counts": {
            "imported": {"session": 1, "part": 7},
            "unchanged": {"summary": 2},
            "updated": {},
            "repaired": {"part": 1},
            "refused": {"message": 1},
            "removed": {},
            "left": {},
        },
        "notes": [
            {
                "outcome": "repaired",
                "kind": "part",
                "source": "a.json",
                "path": "/messages/1/parts/0/text",
                "id": "prt_1",
                "reason": "lone surrogates",
            },
            {
                "outcome": "repaired",
                "kind": "part",
                "source": "a.json",
                "path": "/messages/1/parts/0/time",
                "id": "prt_1",
                "reason": "no time",
            },
            {"outcome": "refused", "kind": "message", "source": "a.json", "path": "/messages/2", "reason": "cut"},
        ],
    }


def test_for_people() -> None:
    assert list(filled().lines()) == [
        "imported: 1 session, 7 parts",
        "unchanged: 2 summaries",
        "repaired: 1 part",
        "refused: 1 message",
        "repaired: part prt_1 (a.json#/messages/1/parts/0/text): lone surrogates",
        "repaired: part prt_1 (a.json#/messages/1/parts/0/time): no time",
        "refused: message (a.json#/messages/2): cut",
    ]
