"""The other side of languages_test.go: reads or writes the messages of a session by the Python package.

    languages.py read ADDRESS SESSION     prints each message of the session's history
    languages.py write ADDRESS SESSION    appends the messages on standard input, which have been parsed here

A message is a line: the name of its type and its bytes in hexadecimal.
"""

import asyncio
import sys

from turnwire import Client, v1


async def main(what: str, address: str, session: str) -> None:
    async with Client.connect(address) as client:
        if what == "read":
            for message in (await client.history(session)).messages:
                print(type(message).__name__, message.SerializeToString().hex())
        else:
            await client.append(session, [parsed(*line.split()) for line in sys.stdin], create=True)


def parsed(name: str, data: str) -> v1.Turn | v1.User | v1.Assistant:
    kind = {"Turn": v1.Turn, "User": v1.User, "Assistant": v1.Assistant}[name]
    return kind.FromString(bytes.fromhex(data))


asyncio.run(main(*sys.argv[1:]))
