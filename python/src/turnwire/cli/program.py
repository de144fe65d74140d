"""All commands in one program."""

from __future__ import annotations

from turnwire.cli import exporting, history, importing, prompts, rendering, schema, serving, sessions, stats, validating
from turnwire.cli.app import application

app = application()
for group in (serving, sessions, history, prompts, rendering, stats, validating, importing, exporting, schema):
    group.add_to(app)
