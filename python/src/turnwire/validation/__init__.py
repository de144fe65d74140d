"""Whether messages and sessions are sound.

`validate` checks one message by the rules of the schema. Beyond that, in three layers whose rules `rules` lists and
``docs/validation.md`` explains:

* **schema**: what can be said of a message by itself (`messages`); the rules stand in the protos;
* **session**: what can be said of an entry by those before it (`SessionCheck`);
* **storage**: what can be said of bytes before they are messages.

A finding is a ``turnwire.v1.Finding``. ``ValidateSession`` and ``ValidateMessages`` of the service, and the command
``turnwire validate``, give these. Findings show values, cut short: who asks gets what is his own.
"""

from __future__ import annotations

from turnwire.validation.registry import Selection, rules
from turnwire.validation.rule import Rule
from turnwire.validation.session import SessionCheck
from turnwire.validation.violations import validate

__all__ = ["Rule", "Selection", "SessionCheck", "rules", "validate"]
