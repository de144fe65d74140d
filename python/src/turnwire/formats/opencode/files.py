"""opencode's file objects: those of file parts and those that belong to a tool's output."""

from __future__ import annotations

from turnwire import v1
from turnwire.formats.fields import INT32, Fields
from turnwire.formats.jsonlit import Json


def file_part(tree: dict[str, Json], at: str, fields: Fields) -> v1.FilePart | None:
    """The file of a file object; None if it has no address."""
    address = tree.get("url")
    if not isinstance(address, str) or not address:
        fields.note(f"{at}/url", "a file without an address")
        return None
    url = fields.text(address, f"{at}/url") or ""
    return v1.FilePart(
        mime=fields.text(tree.get("mime"), f"{at}/mime", 256) or "",
        filename=fields.text(tree.get("filename"), f"{at}/filename", 4096),
        url=url,
        source=_source(tree.get("source"), f"{at}/source", fields),
    )


def _source(value: Json, at: str, fields: Fields) -> v1.FileSource | None:
    if not isinstance(value, dict):
        return None
    path = fields.text(value.get("path"), f"{at}/path") or ""
    source = v1.FileSource(text=text_span(value.get("text"), f"{at}/text", fields))
    match value.get("type"):
        case "file":
            source.file.path = path
            source.file.SetInParent()
        case "symbol":
            symbol = v1.SymbolSource(
                path=path,
                range=_range(value.get("range"), f"{at}/range", fields),
                name=fields.text(value.get("name"), f"{at}/name") or "",
                kind=fields.count(value.get("kind"), f"{at}/kind", INT32) or 0,
            )
            source.symbol.CopyFrom(symbol)
        case "resource":
            client = fields.text(value.get("clientName"), f"{at}/clientName") or ""
            uri = fields.text(value.get("uri"), f"{at}/uri") or ""
            source.resource.CopyFrom(v1.ResourceSource(client_name=client, uri=uri))
        case _:
            fields.note(at, "a source of a kind that is not known")
            return None
    return source


def text_span(value: Json, at: str, fields: Fields) -> v1.TextSpan | None:
    if not isinstance(value, dict):
        return None
    return v1.TextSpan(
        value=fields.text(value.get("value"), f"{at}/value") or "",
        start=fields.count(value.get("start"), f"{at}/start") or 0,
        end=fields.count(value.get("end"), f"{at}/end") or 0,
    )


def _range(value: Json, at: str, fields: Fields) -> v1.Range | None:
    if not isinstance(value, dict):
        return None
    return v1.Range(
        start=_position(value.get("start"), f"{at}/start", fields),
        end=_position(value.get("end"), f"{at}/end", fields),
    )


def _position(value: Json, at: str, fields: Fields) -> v1.Position:
    if not isinstance(value, dict):
        return v1.Position()
    return v1.Position(
        line=fields.count(value.get("line"), f"{at}/line") or 0,
        character=fields.count(value.get("character"), f"{at}/character") or 0,
    )
