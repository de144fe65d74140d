"""The ordinary flow in few words: a session, its turns, and answers that are streamed into it.

::

    async with turnwire.open(path) as tw:
        session = await tw.open_session("ses_demo", title="A talk")
        turn = await session.start_turn("build", model="anthropic/claude-sonnet-4-5")
        await turn.add_user("What does the README say?")

        draft = await turn.prompt()                     # what the model is to get
        draft.push("Answer in one sentence.")           # only now, never in the history
        prompt = await draft.record()                   # kept, so that it can be computed again

        async with turn.answer() as answer:             # prompt.messages went to the model; here is what it says
            await answer.reasoning("I have to read the file.")
            call = await answer.tool("read", input={"path": "README.md"})
            await call.running()
            await call.completed("Turnwire stores sessions.")
            await answer.text("It says that Turnwire ")
            await answer.text("stores sessions.")
            await answer.finish("stop", usage=v1.Usage(tokens=v1.Tokens(input=120, output=14)))

        history = await session.history()

Everything here is put together from the methods of `turnwire.Client`, and other writers may work on the same session
at the same time. ``open_session(..., guarded=True)`` is for those who must be the only writer: each append then expects
the head that the handle knows, and `RevisionConflict` says that somebody else came first; ``await session.refresh()``
gives what was added, and goes on from there.
"""

from __future__ import annotations

from turnwire.handle.answer import Answer
from turnwire.handle.session import Session
from turnwire.handle.tool import ToolCall
from turnwire.handle.turn import PromptDraft, Turn

__all__ = ["Answer", "PromptDraft", "Session", "ToolCall", "Turn"]
