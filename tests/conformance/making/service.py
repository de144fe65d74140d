"""Vectors of service: scripts of calls."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.making import trees
from turnwire.conformance import v1 as conformance
from turnwire.methods import METHODS


def service(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``steps``: ``call`` with ``request`` (and ``and``: bytes behind it) and what it gives, ``reply`` (what it holds
    at least; a stream's are merged) or ``refused``; or a ``condition``."""
    request, expected = conformance.ServiceRequest(), conformance.ServiceResponse()
    for step in tree["steps"]:
        if "condition" in step:
            request.steps.add(condition=conformance.Condition.Value(f"CONDITION_{step['condition']}"))
            continue
        name = step["call"]
        message = trees.message(METHODS[name].request, trees.spelled(step.get("request", {})), fill=True)
        data = message.SerializeToString(deterministic=True) + step.get("and", b"")
        request.steps.add(call=conformance.Call(method=name, request=data))
        if "refused" in step:
            expected.results.add(refused=trees.refusal(step["refused"]))
            continue
        expected.results.add(reply_json=json.dumps(step.get("reply", {})))
    return conformance.Request(service=request), conformance.Response(service=expected)
