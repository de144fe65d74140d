"""Writes build/turnwire-proto-VERSION.tar.gz: protos, spec and vectors alone; `make proto-release` calls it.

Equal files give an equal archive, to the byte.
"""

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import turnwire

README = """\
# Turnwire protos {version}

The message format for the sessions of AI agents, without the libraries. Licence: Apache-2.0.

    proto/turnwire/v1/               the schema; proto/README.md says how to read it
    proto/turnwire/conformance/v1/   the form of vectors, and how a runner talks to an implementation
    third_party/protovalidate/       the schema of the validation rules, which the protos import
    third_party/googleapis/          the details of gRPC errors, for clients that generate them
    turnwire.v1.binpb                google.protobuf.FileDescriptorSet: turnwire.v1 with imports, rules and comments
    docs/                            spec.md: what an implementation has to do; more of prompts, rendering, validation
    tests/conformance/vectors/       what proves it, a turnwire.conformance.v1.VectorFile each; README.md says how
    buf.yaml                         `buf build`, `buf generate` and `buf breaking` work in this folder

With protoc:

    protoc -I proto -I third_party/protovalidate --java_out=out proto/turnwire/v1/*.proto

With a plugin that reads a descriptor set:

    protoc --descriptor_set_in=turnwire.v1.binpb --java_out=out turnwire/v1/session.proto
"""


def main() -> None:
    version = turnwire.__version__
    path = Path("build") / f"turnwire-proto-{version}.tar.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(archive(Path(), version))
    print(path)


def archive(root: Path, version: str) -> bytes:
    """The archive of a repository's protos, gzipped."""
    content = io.BytesIO()
    # Neither the time nor the user of whoever makes it may be seen in it.
    with (
        gzip.GzipFile(filename="", fileobj=content, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, data in sorted(files(root, version)):
            member = tarfile.TarInfo(f"turnwire-proto-{version}/{name}")
            member.size, member.mode, member.mtime = len(data), 0o644, 0
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()


def files(root: Path, version: str) -> Iterator[tuple[str, bytes]]:
    """What is in the archive, by name."""
    yield "README.md", README.format(version=version).encode()
    for name in ("spec.md", "prompt.md", "render.md", "validation.md"):
        yield f"docs/{name}", (root / "docs" / name).read_bytes()
    yield "turnwire.v1.binpb", (root / "python" / "src" / "turnwire" / "schema.binpb").read_bytes()
    for name in ("LICENSE", "buf.yaml", "tests/conformance/README.md"):
        yield name, (root / name).read_bytes()
    for folder in ("proto", "third_party", "tests/conformance/vectors"):
        for path in (root / folder).rglob("*"):
            if path.is_file():
                yield path.relative_to(root).as_posix(), path.read_bytes()


if __name__ == "__main__":
    main()
