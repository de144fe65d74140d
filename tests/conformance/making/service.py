"""Vectors of service: scripts of calls."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.making import trees
from turnwire.conformance import v1 as conformance
from turnwire.methods import METHODS


def service(tree: Any) -> tuple[conformance.Request, conformance.Response]:
    """``steps``: ``call`` with ``request`` and what it gives, ``reply`` (what it holds at least; a stream's are merged)
    or ``refused``; or a ``condition``. ``and`` are bytes behind the request; ``requests`` is a stream of them; ``take``
    names fields of the request and where in earlier replies they come from: ``{page_token: 2 nextPageToken}``."""
    request, expected = conformance.ServiceRequest(), conformance.ServiceResponse()
    for step in tree["steps"]:
        if "condition" in step:
            request.steps.add(condition=conformance.Condition.Value(f"CONDITION_{step['condition']}"))
            continue
        name = step["call"]
        first, *more = (
            trees.message(METHODS[name].request, trees.spelled(each), fill=True).SerializeToString(deterministic=True)
            for each in step.get("requests", [step.get("request", {})])
        )
        call = conformance.Call(method=name, request=first + step.get("and", b""), more_requests=more)
        for field, source in step.get("take", {}).items():
            index, _, member = source.partition(" ")
            call.taken.add(call=int(index), member=member, field=field)
        request.steps.add(call=call)
        if "refused" in step:
            expected.results.add(refused=trees.refusal(step["refused"]))
            continue
        expected.results.add(reply_json=json.dumps(step.get("reply", {})))
    return conformance.Request(service=request), conformance.Response(service=expected)
