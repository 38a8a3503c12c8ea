"""A ReAct agent of DSPy with two tools, and a program that has it answer and then puts the answer shortly.

Run it with ``pip install dspy``, ``OPENAI_API_KEY`` set, and ``spanreplay record -- python agent.py``.
"""

import os

import dspy

MODEL = os.environ.get("MODEL", "openai/gpt-4o-mini")


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


def get_time(city: str) -> str:
    """Get the local time of a city."""
    return f"{city}: 12:00"


class Desk(dspy.Module):
    """Looks things up, then answers in one sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.look_up = dspy.ReAct("question -> findings", tools=[get_weather, get_time])
        self.answer = dspy.ChainOfThought("question, findings -> answer: str")

    def forward(self, question: str) -> dspy.Prediction:
        """Answer a question."""
        return self.answer(question=question, findings=self.look_up(question=question).findings)


dspy.configure(lm=dspy.LM(MODEL))
print(Desk()(question="Is Oslo or Paris warmer?").answer)
