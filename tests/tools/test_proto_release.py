"""The archive of the protos: the same bytes from the same files, and enough to compile alone."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tools import proto_release
from turnwire.rules import schema

ROOT = Path(__file__).parents[2]
NAME = "turnwire-proto-1.2.3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(proto_release.archive(ROOT, "1.2.3"))) as tar:
        tar.extractall(path, filter="data")
    assert [each.name for each in path.iterdir()] == [NAME]
    return path / NAME


def test_the_bytes_are_the_same_wherever_and_whenever(tmp_path: Path) -> None:
    names = ["proto", "third_party", "docs", "LICENSE", "buf.yaml", "python/src/turnwire/schema.binpb"]
    for name in [*names, "tests/conformance/README.md", "tests/conformance/vectors"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, tmp_path / name)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    assert proto_release.archive(tmp_path, "1.2.3") == proto_release.archive(ROOT, "1.2.3")


def test_the_protos_compile_alone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "image.binpb"
    subprocess.run(["buf", "build", "--as-file-descriptor-set", "--output", out], cwd=folder, check=True)
    names = {file.name for file in FileDescriptorSet.FromString(out.read_bytes()).file}
    assert names >= {*schema.file_names(), "turnwire/conformance/v1/vector.proto", "buf/validate/validate.proto"}


def test_the_descriptor_set_stands_alone(folder: Path) -> None:
    found = FileDescriptorSet.FromString((folder / "turnwire.v1.binpb").read_bytes())
    names = [file.name for file in found.file]
    assert set(schema.file_names()) <= set(names)
    for at, file in enumerate(found.file):
        assert set(file.dependency) <= set(names[:at]), "each file comes after those that it imports"


def test_links_lead_to_what_is_there(folder: Path) -> None:
    found = 0
    for path in folder.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text("utf-8")):
            if "://" not in target:
                found += 1
                assert (path.parent / target).exists(), f"{path.relative_to(folder)}: {target}"
    assert found > 4


def test_the_readme_names_what_is_there(folder: Path) -> None:
    readme = (folder / "README.md").read_text("utf-8")
    named = re.findall(r"^    ([a-z_]\S+/|\S+\.(?:binpb|yaml))\s{2,}", readme, re.MULTILINE)
    assert all((folder / name).exists() for name in named)
    assert {name.split("/")[0] for name in named} >= {each.name for each in folder.iterdir() if each.is_dir()}
    assert {each.name for each in (folder / "third_party").iterdir()} <= {Path(name).name for name in named}


def test_the_vectors_are_there(folder: Path) -> None:
    names = {path.name for path in (folder / "tests" / "conformance" / "vectors").iterdir()}
    assert names == {path.name for path in (ROOT / "tests" / "conformance" / "vectors").iterdir()}


def test_the_licences_are_there(folder: Path) -> None:
    for path in (folder / "LICENSE", folder / "third_party" / "protovalidate" / "LICENSE"):
        assert "Apache License" in path.read_text("utf-8")
    assert "turnwire.v1.binpb" in (folder / "README.md").read_text("utf-8")
