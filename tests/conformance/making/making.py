"""From all sources to the files of vectors, one per feature."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.conformance.making import compat, encoding, history, prompts, schema_rules, service, trees
from tests.conformance.runner.running import VECTORS
from tests.conformance.runner.subject import FEATURES
from turnwire import errors
from turnwire.conformance import v1 as conformance

SOURCES: Final = Path(__file__).parents[1] / "sources"

Maker = Callable[[Any], tuple[conformance.Request, conformance.Response]]
MAKERS: Final[Mapping[str, Maker]] = {
    "encoding": encoding.encoding,
    "rules": encoding.rules,
    "fold": history.fold,
    "assembly": history.assembly,
    "mutation": prompts.mutation,
    "digest": history.digest,
    "render": prompts.render,
    "service": service.service,
}


def main() -> int:
    """Write all files. Returns 1 if a source is wrong, and then writes none."""
    try:
        files = make()
    except trees.SourceError as error:
        print(error, file=sys.stderr)
        return 1
    shutil.rmtree(VECTORS, ignore_errors=True)
    VECTORS.mkdir()
    for name, data in files.items():
        (VECTORS / name).write_bytes(data)
    return 0


def make() -> dict[str, bytes]:
    """The files of vectors by their names. Raises SourceError."""
    files = {feature: conformance.VectorFile() for feature in FEATURES}
    names: set[str] = set()
    for vector in vectors():
        feature = vector.request.WhichOneof("request") or ""
        if not vector.name.startswith(f"{feature}/") or vector.name in names:
            raise trees.SourceError(f"{vector.name}: a name of another feature, or one that is there already")
        names.add(vector.name)
        files[feature].vectors.append(vector)
    return {f"{feature}.binpb": file.SerializeToString(deterministic=True) for feature, file in files.items()}


def vectors() -> Iterator[conformance.Vector]:
    """All vectors: of the sources, of the rules that the schema has, of the stored bytes that must stay readable."""
    for path in sorted(SOURCES.glob("*.yaml")):
        tree = trees.load(path)
        for each in tree["vectors"]:
            name = f"{tree['feature']}/{each['name']}"
            try:
                request, expected = MAKERS[tree["feature"]](each)
            except (trees.SourceError, errors.TurnwireError, KeyError) as error:
                raise trees.SourceError(f"{path.name}: {name}: {type(error).__name__}: {error}") from None
            yield conformance.Vector(name=name, sentences=each["proves"], request=request, expected=expected)
            if tree.get("forms"):  # each entry of these logs is also written and read in both forms
                yield from compat.forms(each["name"], request.fold.entries)
    yield from schema_rules.vectors()
    yield from compat.vectors()
