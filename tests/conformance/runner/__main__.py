"""The conformance runner: asks subjects the vectors and prints a table of languages and features.

Exit status: 0 all as claimed; 1 a failure, an error or an unexpected pass; 2 a subject.json or a build that is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.runner import running
from tests.conformance.runner.running import BAD, Outcome, Result
from tests.conformance.runner.subject import FEATURES, Claim, Subject, SubjectError, chosen

ROOT = Path(__file__).parents[3]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.runner", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", type=Path, help="folders with a subject.json; default: all that there are"
    )
    parser.add_argument("--vector", action="append", default=[], metavar="PATTERN", help="only these, as mutation/*")
    parser.add_argument("--no-build", action="store_true", help="do not run what builds the subjects")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long an answer may take (default: 60)")
    parser.add_argument("--verbose", action="store_true", help="tell of every vector, and not only of what is wrong")
    given = parser.parse_args(arguments)
    everything = running.load()
    vectors = running.select(everything, given.vector)
    if not vectors:
        print("no vector has such a name", file=sys.stderr)
        return 2
    rows: list[tuple[Claim, list[Result]]] = []
    bad = False
    try:
        for claim in chosen(ROOT, given.subjects):
            if not given.no_build:
                claim.make()
            try:
                _introduce(claim, given.seconds)
            except SubjectError as error:
                results = running.unanswered(claim, vectors, str(error))
            else:
                results = running.run(claim, vectors, seconds=given.seconds)
            rows.append((claim, results))
            _tell(claim, results, given.verbose)
            for name in running.misnamed(claim, everything):
                bad = True
                print(f"{claim.language}: {name}: listed as a known failure, but no vector has that name")
    except SubjectError as error:
        print(error, file=sys.stderr)
        return 2
    print(table(rows))
    return 1 if bad or any(result.outcome in BAD for _, results in rows for result in results) else 0


def table(rows: Sequence[tuple[Claim, Sequence[Result]]]) -> str:
    """Languages by features: how many of the vectors pass, of how many; what is wrong; "-": not claimed."""
    head = ["", *FEATURES]
    lines = [head]
    for claim, results in rows:
        lines.append(
            [claim.language, *(_cell([each for each in results if each.feature == name]) for name in FEATURES)]
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    outcomes = Counter(result.outcome for _, results in rows for result in results)
    text.append(", ".join(f"{outcomes[outcome]} {outcome.value}" for outcome in Outcome if outcomes[outcome]))
    return "\n".join(text)


def _cell(results: Sequence[Result]) -> str:
    if all(result.outcome is Outcome.SKIPPED for result in results):
        return "-"
    outcomes = Counter(result.outcome for result in results)
    notes = [f"{outcomes[each]} {each.value}" for each in (*BAD, Outcome.KNOWN) if outcomes[each]]
    return " ".join([f"{outcomes[Outcome.PASS]}/{len(results)}", *(f"({', '.join(notes)})" for _ in notes[:1])])


def _introduce(claim: Claim, seconds: float) -> None:
    subject = Subject(claim, seconds=seconds)
    hello = subject.hello()
    subject.close()
    print(f"{claim.language}: {hello.library} on {hello.runtime}")


def _tell(claim: Claim, results: Sequence[Result], verbose: bool) -> None:
    for result in results:
        if result.outcome in BAD or (verbose and result.outcome is not Outcome.SKIPPED):
            print(f"{claim.language}: {result.vector}: {result.outcome.value}")
            for line in result.text.splitlines():
                print(f"    {line}")
        elif result.outcome is Outcome.KNOWN:
            print(f"{claim.language}: {result.vector}: {result.outcome.value}: {result.text}")


if __name__ == "__main__":
    sys.exit(main())
