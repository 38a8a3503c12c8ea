"""smolagents: a model that is a class of the agent's own, in one piece and streamed."""

import json

from smolagents import ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    Model,
)
from toolbox import get_weather, ran


class Own(Model):
    """Asks for the weather, then gives it."""

    def _next(self, messages: list) -> ChatMessageToolCallFunction:
        ran("model")
        if len(messages) > 2:
            return ChatMessageToolCallFunction(name="final_answer", arguments={"answer": "sunny"})
        return ChatMessageToolCallFunction(name="weather", arguments={"city": "Paris"})

    def generate(self, messages, stop_sequences=None, response_format=None, tools_to_call_from=None, **kwargs):
        call = ChatMessageToolCall(function=self._next(messages), id=f"call_{len(messages)}", type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content=None, tool_calls=[call], raw=object())

    def generate_stream(self, messages, stop_sequences=None, response_format=None, tools_to_call_from=None, **kwargs):
        asked = self._next(messages)
        yield ChatMessageStreamDelta(content="I call. ")
        call = ChatMessageToolCallStreamDelta(index=0, id=f"call_{len(messages)}", type="function", function=asked)
        asked.arguments = json.dumps(asked.arguments)
        yield ChatMessageStreamDelta(tool_calls=[call])


@tool
def weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: its name.
    """
    return get_weather(city)


for stream in (False, True):
    agent = ToolCallingAgent(tools=[weather], model=Own(model_id="own"), name="own", verbosity_level=0, stream_outputs=stream)
    print(json.dumps({"mode": "stream" if stream else "plain", "output": agent.run("How is it?")}), flush=True)
