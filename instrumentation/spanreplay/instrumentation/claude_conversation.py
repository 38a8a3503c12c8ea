"""What a program and the Claude CLI that works for it say to each other, as one stream.

The CLI is another process: what it does is known from its messages only, see :mod:`spanreplay.instrumentation.claude_steps`. A record
keeps both directions in order. A replay gives the program the CLI's messages, each once the program has written as much as it had when
the message came, and starts no CLI. Requests carry random ids of the SDK's own; an answer to one is given the id that the request has now.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.streams import astream
from spanreplay.content import codec
from spanreplay.instrumentation.claude_steps import Message, Steps


class Conversation:
    """One connection to a CLI.

    Args:
        scope: of the run that it is for.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.replaying = scope.session.mode == "replay"
        self._written: list[Message] = []
        self._told = 0
        """Writes that are in the stream already."""
        self._more = asyncio.Event()
        self._steps = Steps(scope)
        self._pairs: AsyncGenerator[dict[str, Message]] | None = None

    def wrote(self, data: str) -> None:
        """The program has written a line.

        Raises:
            ControlSignal: a replay finds that it is not what was recorded.
        """
        message = _parsed(data)
        self._written.append(message)
        self._more.set()
        self._steps.wrote(message)

    async def read(self, source: Callable[[], AsyncIterator[Message]]) -> AsyncGenerator[Message]:
        """The CLI's messages: from ``source``, or recorded ones."""
        call = Call(kind="io", name="claude", input=codec.encode({"conversation": "claude"}))
        self._pairs = pairs = astream(self.scope, call, lambda: self._both(source))
        renamed: dict[str, str] = {}
        seen = 0
        try:
            async for pair in pairs:
                if "to" in pair:
                    seen += 1
                    if self.replaying:
                        now = await self._wait(seen)
                        if pair["to"].get("request_id") and now.get("request_id"):
                            renamed[pair["to"]["request_id"]] = now["request_id"]
                    continue
                message = pair["from"]
                self._steps.read(message)
                yield _answering(message, renamed) if renamed else message
        finally:
            self._steps.close()

    async def close(self) -> None:
        """The connection is closed: whoever reads was cancelled, perhaps while it held a message and so without our seeing it."""
        cancelled = asyncio.CancelledError()
        try:
            if self._pairs is not None:
                await self._pairs.athrow(cancelled)
        except asyncio.CancelledError as error:
            if error is not cancelled:
                raise
        except (StopAsyncIteration, RuntimeError):  # it is at its end, or still being read
            return
        finally:
            self._steps.close()

    async def _both(self, source: Callable[[], AsyncIterator[Message]]) -> AsyncGenerator[dict[str, Message]]:
        async for message in source():
            for written in self._new():
                yield {"to": written}
            yield {"from": message}
        for written in self._new():
            yield {"to": written}

    def _new(self) -> list[Message]:
        new = self._written[self._told :]
        self._told += len(new)
        return new

    async def _wait(self, count: int) -> Message:
        while len(self._written) < count:
            self._more.clear()
            await self._more.wait()
        return self._written[count - 1]


def _parsed(data: str) -> Message:
    try:
        message = json.loads(data)
    except ValueError:
        message = None
    return message if isinstance(message, dict) else {"raw": data}


def _answering(message: Message, renamed: Mapping[str, str]) -> Message:
    response = message.get("response")
    if message.get("type") != "control_response" or not isinstance(response, dict) or response.get("request_id") not in renamed:
        return message
    return {**message, "response": {**response, "request_id": renamed[response["request_id"]]}}
