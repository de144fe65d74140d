"""The peers: session stores of other agent programs, each measured in the environment of ``bench/requirements.txt``.

Nothing here imports Turnwire, and nothing of Turnwire imports a peer.
"""

from __future__ import annotations

#: The peers by the names that figures bear, with what is said of how each was used.
PEERS: dict[str, str] = {
    "openai-agents": (
        "OpenAI Agents SDK `SQLiteSession`: `add_items`, `get_items`. WAL and synchronous=FULL are what it and SQLite "
        "set by default. One table row for each item, no checks, no order but the row's."
    ),
    "langgraph": (
        "LangGraph `SqliteSaver` on a connection with synchronous=FULL (WAL is its own): one checkpoint for each "
        "append, which holds all messages so far, as a graph over a messages channel writes it. Every caller's thread "
        "begins empty in every round, so that its figures are those of short sessions. It reads a session as a whole."
    ),
    "google-adk": (
        "Google ADK `DatabaseSessionService` on an engine of ours with WAL and synchronous=FULL: `append_event`, "
        "one by one since it has no batches, and `get_session`."
    ),
}
