"""The filter's program, run here as the kernel runs it, on both processors: which calls are stopped, refused or let through."""

import struct
from collections.abc import Sequence

import pytest

from spanreplay.replay.isolation import judging, judging_files, numbered
from spanreplay.replay.isolation.system_calls import MACHINES, RULES, Machine, program

ALLOW, REFUSE, STOP = 0x7FFF0000, 0x0005000D, 0x7FC00000
CREATE = 0x41


def verdict(code: bytes, machine: Machine, number: int, arguments: Sequence[int] = (), arch: int | None = None) -> int:
    """What the program gives: a machine with one register, after ``linux/filter.h``."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, machine.arch if arch is None else arch, 0, *(value & (2**64 - 1) for value in padded))
    instructions = list(struct.iter_unpack("=HBBI", code))
    at = register = 0
    while True:
        operation, true, false, value = instructions[at]
        at += 1
        if operation == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif operation == 0x05:
            at += value
        elif operation == 0x06:
            return int(value)
        else:
            holds = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[operation]
            at += true if holds else false


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


CASES = [
    ("openat", (-100, 0, 0), ALLOW, ALLOW),
    ("openat", (-100, 0, 1), STOP, ALLOW),
    ("openat", (-100, 0, CREATE), STOP, ALLOW),
    ("openat", (-100, 0, 0o2000000), ALLOW, ALLOW),
    ("connect", (), STOP, REFUSE),
    ("sendto", (3, 0, 1, 0, 0, 0), ALLOW, ALLOW),
    ("sendto", (3, 0, 1, 0, 1, 16), STOP, REFUSE),
    ("sendto", (3, 0, 1, 0, 1 << 40, 16), STOP, REFUSE),
    ("sendmsg", (3, 0, 0), STOP, ALLOW),
    ("socket", (1, 2), ALLOW, ALLOW),
    ("socket", (2, 1), ALLOW, ALLOW),
    ("socket", (2, 1 | 0o2000000), ALLOW, ALLOW),
    ("socket", (2, 2), ALLOW, REFUSE),
    ("socket", (10, 3), STOP, REFUSE),
    ("socket", (16, 3), ALLOW, ALLOW),
    ("socket", (17, 3), STOP, REFUSE),
    ("socket", (40, 1), STOP, REFUSE),
    ("ioctl", (3, 0x5401), ALLOW, ALLOW),
    ("ioctl", (3, 0x5412), REFUSE, REFUSE),
    ("ioctl", (3, 0x40086602), REFUSE, REFUSE),
    ("ioctl", (3, 0x40087602), REFUSE, REFUSE),
    ("ioctl", (3, 0x50009418), REFUSE, REFUSE),
    ("setpriority", (0, 0, 5), ALLOW, ALLOW),
    ("setpriority", (0, 7, 5), STOP, REFUSE),
    ("prlimit64", (7, 7, 0, 1), ALLOW, ALLOW),
    ("prlimit64", (7, 7, 1, 0), STOP, REFUSE),
    ("prlimit64", (0, 7, 1, 0), ALLOW, ALLOW),
    ("shmget", (0, 1, 0), ALLOW, ALLOW),
    ("shmget", (5, 1, 0), STOP, REFUSE),
    ("shmat", (5, 0, 0), STOP, ALLOW),
    ("semop", (5, 0, 1), STOP, ALLOW),
    ("listen", (3, 1), STOP, ALLOW),
    ("chroot", (), STOP, REFUSE),
    ("kill", (7, 9), STOP, ALLOW),
    ("fchmod", (3, 0), STOP, ALLOW),
    ("mount", (), STOP, REFUSE),
    ("io_uring_setup", (), STOP, REFUSE),
]


@pytest.mark.parametrize(("name", "arguments", "heard", "unheard"), CASES)
def test_what_becomes_of_a_call(name: str, arguments: tuple[int, ...], heard: int, unheard: int, machine: Machine) -> None:
    number = machine.numbers[name]
    assert verdict(program(machine, heard=True), machine, number, arguments) == heard
    assert verdict(program(machine, heard=False), machine, number, arguments) == unheard


def test_ordinary_calls_go_through_and_other_entrances_do_not(machine: Machine) -> None:
    code = program(machine, heard=True)
    known = set(machine.numbers.values())
    assert {verdict(code, machine, number) for number in range(500) if number not in known} == {ALLOW}
    assert verdict(code, machine, machine.numbers["connect"], arch=0x40000003) == REFUSE
    assert verdict(code, machine, 0x40000000 + machine.numbers["connect"]) == REFUSE


def test_the_descriptor_that_tells_can_be_handed_over_and_nothing_else(machine: Machine) -> None:
    code = program(machine, heard=True, pass_flags=1 << 30 | 0x1200)
    number = machine.numbers["sendmsg"]
    assert verdict(code, machine, number, (3, 0, 1 << 30 | 0x1200)) == ALLOW
    assert verdict(code, machine, number, (3, 0, 0)) == STOP


def test_numbers_are_no_one_elses_and_every_rule_is_judged() -> None:
    for machine in MACHINES.values():
        assert len(set(machine.numbers.values())) == len(machine.numbers)
    judged = {*judging_files.CALLS, *judging._SIGNALS, *judging._CONTROLS, *judging._PLAIN}
    judged |= {"bind", "listen", "connect", "sendto", "sendmsg", "sendmmsg", *numbered.CALLS}
    assert {rule.call for rule in RULES if rule.stops} == judged
