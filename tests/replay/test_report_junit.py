"""JUnit XML and annotations say what failed, whatever is in it."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.case import Case, worst
from spanreplay.replay.reports import github, junit
from spanreplay.replay.showing import safe

FAILED = Case(
    group="support",
    name="run 4f2a",
    ended="failed",
    word="different",
    message="step 1: it differs",
    text="all of it\n100 %",
    said="printed",
    seconds=1.25,
    where="/repo/agents/a,b:c.py:27",
    properties={"behaviour": "sha256:ab"},
)
PASSED = Case(group="support", name="run 77", ended="passed", word="equal")
ODD = Case(group="support", name="run 12", ended="error", word="cannot judge", message="cut short")


def test_what_ci_systems_read() -> None:
    root = ET.fromstring(junit.write([FAILED, PASSED, ODD], name="spanreplay replay"))
    ((properties, *cases),) = root
    (suite,) = root
    assert {key: suite.get(key) for key in ("name", "tests", "failures", "errors", "time")} == {
        "name": "spanreplay replay",
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "time": "1.250",
    }
    failed, passed, odd = cases
    assert (failed.get("classname"), failed.get("name"), failed.get("time")) == ("support", "run 4f2a", "1.250")
    assert [(p.get("name"), p.get("value")) for p in properties] == [
        ("run 4f2a behaviour", "sha256:ab"),
        ("run 4f2a where", "/repo/agents/a,b:c.py:27"),
    ]
    told = failed.find("failure")
    assert told is not None
    assert (told.get("type"), told.get("message"), told.text) == ("different", "step 1: it differs", "all of it\n100 %")
    assert failed.findtext("system-out") == "printed"
    assert list(passed) == []
    error = odd.find("error")
    assert error is not None
    assert (error.get("type"), error.text) == ("cannot judge", "cut short")


STRICT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "time", "skipped"}, {"properties", "testcase"}),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "time", "classname"}, {"error", "failure", "system-out"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
"""Of what ``junit-10.xsd`` of Jenkins' xUnit plugin allows, what is written: attributes and elements."""


def test_nothing_is_written_that_the_strictest_reader_does_not_know() -> None:
    root = ET.fromstring(junit.write([FAILED, PASSED, ODD], name="spanreplay replay"))
    for element in root.iter():
        attributes, inside = STRICT[element.tag]
        assert set(element.attrib) <= attributes
        assert {child.tag for child in element} <= inside
    assert [{key for key in ("name", "tests", "failures", "errors") if key not in suite.attrib} for suite in root] == [set()]


@given(text=st.text(st.characters(codec=None), max_size=40))
@settings(max_examples=30)
def test_any_text_makes_xml_and_stays_in_its_line(text: str) -> None:
    case = Case(group=text, name=text, ended="failed", word="different", message=text, text=text, said=text, where=f"{text}:1")
    root = ET.fromstring(junit.write([case], name=text))
    assert len(list(root.iter("testcase"))) == 1
    (line,) = github.annotations([case])
    assert line.startswith("::error ")
    assert safe(line) == line


def test_annotations_as_the_runner_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/repo")
    failed, odd = github.annotations([FAILED, PASSED, ODD])
    assert failed == "::error file=agents/a%2Cb%3Ac.py,line=27,title=support run 4f2a%3A different::all of it%0A100 %25"
    assert odd == "::warning title=support run 12%3A cannot judge::cut short"


@pytest.mark.parametrize(("codes", "code"), [([0, 0], 0), ([0, 125], 125), ([125, 1], 1), ([1, 4, 125], 4), ([], 125)])
def test_the_worst_of_several_exit_codes(codes: list[int], code: int) -> None:
    assert worst(codes) == code
