"""What takes long begins first in each worker's share, and no test is lost."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from support.order import LONG, dealt

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Test:
    nodeid: str
    __test__ = False


LIGHT = [Test(f"tests/exporter/test_query.py::test_{number}") for number in range(20)]
HEAVY = [Test(f"tests/pages/test_ci.py::test_{number}") for number in range(3)]
HEAVIEST = Test("tests/conformance/test_conformance.py::test_spanreplay_passes_as_a_command")


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_each_share_begins_with_its_part_of_what_takes_long(workers: int) -> None:
    tests = [*LIGHT[:10], *HEAVY, *LIGHT[10:], HEAVIEST]
    given = dealt(tests, workers)
    assert sorted(given, key=tests.index) == tests
    assert given[0] == HEAVIEST
    if workers == 2:
        assert [test in LIGHT for test in given].index(True) == 2
        assert given[12:14] == [HEAVY[0], HEAVY[2]]
    light = [test for test in given if test in LIGHT]
    assert light == LIGHT, "tests of one file stay together"


def test_what_is_said_to_take_long_is_there() -> None:
    for beginning in LONG:
        file, _, test = beginning.partition("::")
        assert (HERE / file).exists(), beginning
        assert f"def {test}" in (HERE / file).read_text(encoding="utf-8") if test else True, beginning
