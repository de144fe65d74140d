"""Choices by name: taken at once or refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from turnwire.rendering import Options
from turnwire.rendering.options import MediaPolicy, Stopped


def test_choices_may_be_given_by_name() -> None:
    given: Any = {"aborted": "keep", "media": "placeholder"}
    options = Options(**given)
    assert (options.aborted, options.media) == (Stopped.KEEP, MediaPolicy.PLACEHOLDER)


def test_a_name_that_is_none_is_refused() -> None:
    given: Any = {"failed": "perhaps"}
    with pytest.raises(ValueError, match='failed is one of "keep", "drop", and not \'perhaps\''):
        Options(**given)
