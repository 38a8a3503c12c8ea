"""JUnit XML, the form that CI systems read test results in.

There is no standard; this is what Jenkins, GitLab, Azure and GitHub's reporters have in common
(https://github.com/testmoapp/junitxml): ``testsuites > testsuite > testcase``, of which a failed one holds ``failure`` and one that could
not be judged ``error``. It fits the strictest schema in use, ``junit-10.xsd`` of Jenkins' xUnit plugin, which takes no file with anything
else in it: so a test case has no properties and no place of its own; they are properties of the suite, and begin with its name.
"""

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from spanreplay.replay.case import Case

_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no notation for (https://www.w3.org/TR/xml/#charsets)."""
_LONGEST: Final = 20_000
"""Characters of one text."""


def write(cases: Sequence[Case], *, name: str) -> bytes:
    """The whole file, UTF-8.

    Args:
        cases: in the order wanted.
        name: of the suite.
    """
    totals = {
        "tests": str(len(cases)),
        "failures": str(sum(case.ended == "failed" for case in cases)),
        "errors": str(sum(case.ended == "error" for case in cases)),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }
    root = ET.Element("testsuites", {"name": _clean(name), **totals})
    suite = ET.SubElement(root, "testsuite", {"name": _clean(name), "skipped": "0", **totals})
    facts = [(f"{case.name} {key}", value) for case in cases for key, value in _facts(case).items()]
    if facts:
        properties = ET.SubElement(suite, "properties")
        for key, value in facts:
            ET.SubElement(properties, "property", {"name": _clean(key), "value": _clean(value)})
    for case in cases:
        _add(suite, case)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(suite: ET.Element, case: Case) -> None:
    about = {"classname": _clean(case.group), "name": _clean(case.name), "time": f"{case.seconds:.3f}"}
    made = ET.SubElement(suite, "testcase", about)
    if case.ended != "passed":
        tag = "failure" if case.ended == "failed" else "error"
        ET.SubElement(made, tag, {"type": _clean(case.word), "message": _clean(case.message)}).text = _clean(case.text or case.message)
    if case.said:
        ET.SubElement(made, "system-out").text = _clean(case.said)


def _facts(case: Case) -> dict[str, str]:
    told = {key: str(value) for key, value in case.properties.items()}
    return told if case.where is None else {**told, "where": case.where}


def _clean(text: str) -> str:
    """A text of a trace as XML can hold it: other characters written out."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
