"""Runs the vectors through a subject and counts what came out."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tests.conformance.runner.equality import difference
from tests.conformance.runner.subject import FEATURES, Claim, Subject, SubjectError
from turnwire.conformance import v1 as conformance

VECTORS: Final = Path(__file__).parents[1] / "vectors"


class Outcome(enum.Enum):
    """What became of a vector."""

    PASS = "pass"
    #: Another answer than the expected one.
    FAIL = "fail"
    #: No answer, or one that says that the subject could not.
    ERROR = "error"
    #: The subject does not claim the feature.
    SKIPPED = "skipped"
    #: A fail or an error that the subject's file lists.
    KNOWN = "known failure"
    #: It passes though the file lists it.
    UNEXPECTED = "unexpected pass"


#: What a run may not have.
BAD: Final = (Outcome.FAIL, Outcome.ERROR, Outcome.UNEXPECTED)


@dataclass(frozen=True)
class Result:
    """The outcome of one vector, and what there is to say about it."""

    vector: str
    feature: str
    outcome: Outcome
    text: str = ""


def load(folder: Path = VECTORS) -> list[conformance.Vector]:
    """All vectors of the files, in the order of the files' names."""
    found: list[conformance.Vector] = []
    for path in sorted(folder.glob("*.binpb")):
        found.extend(conformance.VectorFile.FromString(path.read_bytes()).vectors)
    return found


def select(vectors: Iterable[conformance.Vector], patterns: Sequence[str]) -> list[conformance.Vector]:
    """The vectors whose names fit one of the patterns (``mutation/*``); all, without patterns."""
    return [each for each in vectors if not patterns or any(fnmatchcase(each.name, one) for one in patterns)]


def feature(vector: conformance.Vector) -> str:
    """The feature that a vector is of."""
    return vector.request.WhichOneof("request") or ""


def run(claim: Claim, vectors: Sequence[conformance.Vector], *, seconds: float = 60.0) -> list[Result]:
    """Ask a subject all vectors of the features that it claims. One that cannot be started is an error of each."""
    subject = Subject(claim, seconds=seconds)
    results = [_one(subject, vector) for vector in vectors]
    try:
        subject.close()
    except SubjectError as error:
        results.append(Result("(end)", FEATURES[0], Outcome.ERROR, str(error)))
    return results


def unanswered(claim: Claim, vectors: Sequence[conformance.Vector], text: str) -> list[Result]:
    """What comes of the vectors if a subject does not even say who it is, and why: an error of each that it claims."""
    outcomes = {True: Outcome.ERROR, False: Outcome.SKIPPED}
    return [Result(each.name, feature(each), outcomes[feature(each) in claim.features], text) for each in vectors]


def misnamed(claim: Claim, vectors: Iterable[conformance.Vector]) -> list[str]:
    """Known failures that no vector of a claimed feature is named."""
    return sorted(claim.known_failures.keys() - {each.name for each in vectors if feature(each) in claim.features})


def _one(subject: Subject, vector: conformance.Vector) -> Result:
    claim = subject.claim
    if feature(vector) not in claim.features:
        return Result(vector.name, feature(vector), Outcome.SKIPPED)
    try:
        answer = subject.ask(vector.request)
    except SubjectError as error:
        outcome, text = Outcome.ERROR, str(error)
    else:
        if answer.WhichOneof("response") == "error":
            outcome, text = Outcome.ERROR, answer.error
        else:
            different = difference(vector.request, vector.expected, answer)
            outcome, text = (Outcome.PASS, "") if different is None else (Outcome.FAIL, different)
    reason = claim.known_failures.get(vector.name)
    if reason is not None:
        outcome, text = (Outcome.UNEXPECTED if outcome is Outcome.PASS else Outcome.KNOWN), reason
    return Result(vector.name, feature(vector), outcome, text)
