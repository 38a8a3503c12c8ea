"""A recorder that records nothing and lets everything run again: no scenario may pass with it, or the scenario could not fail."""

from pathlib import Path

from conformance.driver import Driver, Program, Replayed


class Nothing(Driver):
    """See above."""

    name = "nothing"
    mode = "every call is live"

    def version(self) -> str:
        return "0"

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        return program()

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        return Replayed(value=program())


DRIVER = Nothing()
