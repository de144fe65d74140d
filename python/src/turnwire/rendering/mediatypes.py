"""Files as media: what a data URL holds, and what kind of content a media type names."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from turnwire import v1
from turnwire.rendering.form import NOWHERE, Media, Origin

IMAGE, PDF, AUDIO, VIDEO, TEXT, OTHER = "image", "pdf", "audio", "video", "text", "other"

#: What programs name a file that is only mentioned: its content, if any, is in the texts beside it.
FOLDER = "application/x-directory"

_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/javascript", "application/x-yaml"})
_HEADER = re.compile(r"data:([^,]{0,1000}),", re.IGNORECASE)


def kind(mime: str) -> str:
    """The kind of content of a media type: one of the names above."""
    mime = mime.lower()
    family = mime.partition("/")[0]
    if family in (IMAGE, AUDIO, VIDEO, TEXT):
        return family
    if mime == "application/pdf":
        return PDF
    return TEXT if mime in _TEXT_TYPES else OTHER


def media(file: v1.FilePart, origin: Origin = NOWHERE, *, strict: bool = True) -> Media:
    """The media of a file. A data URL's own media type counts before the file's.

    ``strict`` looks into the data: what is no base64 has no content. Else it is taken as it stands.
    """
    url = file.url
    if url[:5].lower() != "data:":
        remote = url[:8].lower().startswith(("http://", "https://"))
        return Media(file.mime, url=url if remote else "", name=file.filename, origin=origin)
    head = _HEADER.match(url)
    if head is None:
        return Media(file.mime, name=file.filename, origin=origin)
    mime, *parameters = head[1].split(";")
    encoded = any(parameter.strip().lower() == "base64" for parameter in parameters)
    data = url[head.end() :]
    if strict:
        data = _checked(data) if encoded else base64.b64encode(unquote_to_bytes(data)).decode()
    return Media(mime.strip() or file.mime, data, name=file.filename, origin=origin)


def _checked(data: str) -> str:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        # Padding and line breaks may be missing or odd; whatever decodes is written anew.
        try:
            loose = re.sub(r"\s", "", data).rstrip("=").replace("-", "+").replace("_", "/")
            return base64.b64encode(binascii.a2b_base64(loose + "=" * (-len(loose) % 4), strict_mode=True)).decode()
        except ValueError:
            return ""
    return data


def text_of(item: Media) -> str | None:
    """The content of a text file; None if it is no UTF-8."""
    try:
        return binascii.a2b_base64(item.data).decode()
    except ValueError:
        return None


_MAGIC = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("JVBERi0", "application/pdf"),
)


def sniffed(data: str) -> str:
    """The media type of base64 that came without one, by its first bytes; of no type that is known: any bytes."""
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), "application/octet-stream")
