"""``--bisect``: exit codes that ``git bisect run`` understands (https://git-scm.com/docs/git-bisect#_bisect_run).

0 equal; 1 different or refused; 125 cannot be judged: git tries another commit; 128 anything else: git stops, as that is not the commit's
fault.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spanreplay.replay.reexecution.command import CommandReplay

OPTION: Final = "--bisect"
_ABORT: Final = 128
_KNOWN: Final = {0: 0, 1: 1, 4: 1, 125: 125}


def bisected(code: int) -> int:
    """The exit code of ``replay`` as ``git bisect run`` takes it."""
    return _KNOWN.get(code, _ABORT)


def never_began(done: "CommandReplay") -> bool:
    """Whether the command failed before the first step that the record has: a commit that cannot even start tells nothing of the others."""
    steps = [step for run in done.runs for step in run.steps]
    kinds = {difference.kind for difference in done.verdict.differences}
    return bool(steps) and done.exit_code != 0 and done.verdict.matched == 0 and kinds == {"unreached"} and not done.verdict.refusals
