"""Tools that wait for a human with ``interrupt``: one, and two at once that are answered by id; the graph goes on where it was."""

import json

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from toolbox import ran


def book(city: str) -> str:
    """Book a flight, once a human has said which class.

    Args:
        city: where to.
    """
    seat = interrupt({"question": f"Which class to {city}?"})
    ran("book")
    return f"booked {seat} to {city}"


agent = create_agent(ChatOpenAI(model="gpt-4o-mini", stream_usage=True), [book], name="travel", checkpointer=InMemorySaver())


def ask(thread, asked, answers):
    config = {"configurable": {"thread_id": thread}}
    state = agent.invoke({"messages": [("user", asked)]}, config)
    waiting = state["__interrupt__"]
    questions = [one.value["question"] for one in waiting]
    by_id = {one.id: answers[one.value["question"][-5:-1]] for one in waiting}
    state = agent.invoke(Command(resume=by_id if len(by_id) > 1 else by_id.popitem()[1]), config)
    results = [message.content for message in state["messages"] if message.type == "tool"]
    print(json.dumps({"mode": thread, "output": [sorted(questions), results, state["messages"][-1].content]}), flush=True)


ask("one", "Book Rome.", {"Rome": "economy"})
ask("two", "Book Oslo and Bonn.", {"Oslo": "first", "Bonn": "economy"})
