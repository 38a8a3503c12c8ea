"""The model's answers are what the SDKs' own types allow, and a driver file that is none is told so."""

import json
from pathlib import Path

import anthropic.types
import openai.types.chat
import openai.types.responses
import pydantic
import pytest

from conformance import host, wire
from conformance.__main__ import main
from conformance.driver import load
from conformance.model import Asked, Reply

REPLY = Reply(text="It is sunny.", calls=[("weather", {"city": "Lisbon"}), ("send_mail", {"to": "Ana"})])


def asked(path: str) -> Asked:
    return Asked(path=path, body={"model": "m-1"}, number=3, fresh="0a1b2c3d")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("v1/chat/completions", openai.types.chat.ChatCompletion),
        ("v1/responses", openai.types.responses.Response),
        ("v1/embeddings", openai.types.CreateEmbeddingResponse),
        ("v1/messages", anthropic.types.Message),
    ],
)
def test_a_whole_answer_is_valid(path: str, kind: type[pydantic.BaseModel]) -> None:
    kind.model_validate(wire.body(asked(path), REPLY))


@pytest.mark.parametrize(
    ("path", "kind"),
    [("v1/chat/completions", openai.types.chat.ChatCompletionChunk), ("v1/messages", anthropic.types.RawMessageStreamEvent)],
)
def test_an_answer_in_pieces_is_valid(path: str, kind: type) -> None:
    adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(kind)
    lines = [event.decode().strip().rpartition("data: ")[2] for event in wire.events(asked(path), REPLY)]
    told = [json.loads(line) for line in lines if line != "[DONE]"]
    for event in told:
        adapter.validate_python(event)
    assert len(told) > 8


def test_a_file_without_a_driver_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("DRIVER = 7\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"wanted DRIVER, an instance of a conformance\.driver\.Driver; found 7"):
        load(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("X = 1\n", "wanted DRIVER, an instance of a conformance.driver.Driver; found None"),
        ("X = 1\nDRIVER = X.name\n", "it fails: AttributeError: 'int' object has no attribute 'name' (line 2)"),
        ("def (\n", "it fails: SyntaxError: "),
    ],
)
def test_a_driver_that_cannot_be_loaded_is_told_of_in_a_line(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(code, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["host", str(file)])
    host.main()
    assert json.loads(capsys.readouterr().out)["failed"].startswith(says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch.py"], "there is no driver file nosuch.py; name a file that ends in .py, or one of: "),
        (["nothing", "--python", "/nonexistent/python"], "/nonexistent/python cannot be run: No such file"),
        (["nothing", "--output", "/nonexistent/folder/results.json"], "there is no folder /nonexistent/folder"),
    ],
)
def test_wrong_use_is_said_in_a_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert says in capsys.readouterr().err
