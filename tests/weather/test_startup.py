"""``record`` of programs that make it hard: a sitecustomize of their own, an isolated Python, a Python without spanreplay."""

import os
import sys
import venv

import pytest

from weather.station import Station

PLAIN = "import json, sys\nprint(json.dumps(sys.argv[1:]))\nsys.exit(3)\n"


def script(station: Station, text: str) -> str:
    path = station.work / "program.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("broken", [False, True])
def test_a_sitecustomize_of_the_program(station: Station, broken: bool) -> None:
    theirs = station.root / "theirs"
    theirs.mkdir()
    text = "import os\nos.environ['THEIRS'] = __name__ + __file__\n" + ("raise RuntimeError('theirs is broken')\n" if broken else "")
    (theirs / "sitecustomize.py").write_text(text)
    there = station.with_path(theirs)
    program = script(station, "import os\nfrom spanreplay.instrumentation import tool\nprint(os.environ['THEIRS'])\ntool(len)('four')\n")
    bare = there.run([sys.executable, program])
    done = there.record([sys.executable, program])
    assert (done.code, done.out) == (bare.code, bare.out), str(done)
    assert ("RuntimeError: theirs is broken" in done.err) == broken
    (run,) = there.kept().runs
    assert [step.name for step in run.steps] == ["len"]


def test_an_isolated_python_is_said_not_to_have_reported(station: Station) -> None:
    done = station.record([sys.executable, "-I", script(station, PLAIN), "x"])
    assert (done.code, done.out) == (3, '["x"]\n')
    assert "no Python process reported in" in done.err
    assert "-I" in done.err


def test_a_virtual_environment_without_spanreplay(station: Station) -> None:
    folder = station.root / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = station.record([str(python), script(station, PLAIN), "x"])
    assert (done.code, done.out) == (3, '["x"]\n'), str(done)
    assert f"{python} -m pip install spanreplay" in done.err
    replayed = station.spanreplay("replay", "last", "--", str(python), script(station, PLAIN), "x")
    assert replayed.code == 125, str(replayed)
    assert '["x"]' not in replayed.out
