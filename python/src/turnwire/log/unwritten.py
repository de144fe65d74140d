"""What no server of any version has written into a log, whatever its digests say."""

from __future__ import annotations

from turnwire import rules, v1
from turnwire.log import prepare
from turnwire.log.prepare import Prepared

_ROLES = {prepare.USER: v1.Role.ROLE_USER, prepare.ASSISTANT: v1.Role.ROLE_ASSISTANT}
#: Rules about which parts stand where. Others have limits and forms, which a version may have been without.
_ALWAYS = (rules.HELD_BY, rules.STORED_ONLY)


def why(entry: Prepared, revision: int) -> str:
    """Why an entry cannot have been written, for people; empty if it can. It is one that ``raw.prepared`` made.

    What depends on the entries before it (the role of the message that a part is put into) is left to admission.
    """
    if entry.field == prepare.SESSION and revision > 1:
        assert isinstance(entry.message, v1.SessionProperties)
        if entry.message.HasField("forked_from"):
            return "properties after revision 1 name what the session was forked from"
    if entry.field == prepare.PART and entry.before_id == entry.parts[0].id:
        return "a part stands before itself"
    if entry.field in _ROLES:
        return _message(entry)
    if isinstance(entry.message, v1.PromptRecord):
        for violation in rules.check(entry.message):
            if violation.rule in _ALWAYS:
                return f"{violation.path}: {violation.text}"
    return ""


def _message(entry: Prepared) -> str:
    for reference in entry.references:
        inside = reference.path.startswith(f"{entry.message_path}.parts[")
        if reference.value == entry.id and reference.kind == v1.RefKind.REF_KIND_MESSAGE and not inside:
            return "a message names itself"
    role = _ROLES[entry.field]
    for part in entry.parts:
        roles = prepare.KIND_ROLES.get(part.kind)
        if roles is not None and role not in roles:
            return f"a part of kind {prepare.KIND_NAMES[part.kind]} in a message of the wrong role"
    return ""
