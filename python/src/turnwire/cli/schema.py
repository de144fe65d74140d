"""``turnwire schema``: the descriptor set, the messages, and their JSON Schemas."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf import json_format

from turnwire.cli import jsonschema, tables
from turnwire.cli.app import Call, command
from turnwire.cli.usage import Usage
from turnwire.rules import schema as descriptors


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "schema")(schema)


async def schema(
    call: Call,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="A message, for example Turn.", show_default=False)
    ] = None,
    binary: Annotated[bool, typer.Option("--binary", help="Write the descriptor set in binary.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the descriptor set in binary to a file.", show_default=False),
    ] = None,
) -> None:
    """Show the schema: its messages, the JSON Schema of one, or the descriptor set.

    A JSON Schema is that of the message's canonical ProtoJSON, rules included. The descriptor set is a
    google.protobuf.FileDescriptorSet with all imports and comments. Without MESSAGE, --json writes the descriptor set
    as JSON. Needs neither store nor server.
    """
    if message is not None and (binary or output is not None):
        raise Usage("the descriptor set is always whole: give no MESSAGE with --binary or --output")
    if message is not None:
        _one(call, message)
    elif output is not None:
        output.write_bytes(descriptors.descriptor_set().SerializeToString())
    elif binary:
        if sys.stdout.isatty():
            raise Usage("the descriptor set is binary; send it to a file or a program, or use --output")
        call.out.binary(descriptors.descriptor_set().SerializeToString())
    elif call.out.json:
        # Options are extensions, which only the pool that the files describe can name.
        pool = descriptors.pool()
        found = descriptors.message_class("google.protobuf.FileDescriptorSet").FromString(
            descriptors.descriptor_set().SerializeToString()
        )
        call.out.object(json_format.MessageToDict(found, descriptor_pool=pool))
    else:
        names = jsonschema.message_names()
        rows = [(name, jsonschema.first_sentence(jsonschema.comment(jsonschema.find(name)))) for name in names]
        call.out.print(tables.names("message", rows))


def _one(call: Call, name: str) -> None:
    try:
        found = jsonschema.json_schema(jsonschema.find(name))
    except KeyError:
        raise Usage(f"the schema has no message {name}; `turnwire schema` lists them") from None
    if call.out.json:
        call.out.object(found)
    else:
        call.out.text(json.dumps(found, indent=2, ensure_ascii=False))
