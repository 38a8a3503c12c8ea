"""The cases here, and the environment of each."""

from pathlib import Path

from support.environments import environment as environment_of

HERE = Path(__file__).parent


def cases() -> list[str]:
    """The cases: every folder here that pins its requirements."""
    return sorted(found.parent.name for found in HERE.glob("*/requirements.txt"))


def environment(case: str) -> Path:
    """The folder of a case's environment, with this checkout installed in it."""
    return environment_of(case, HERE / case / "requirements.txt")
