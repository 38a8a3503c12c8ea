"""``collector-config``: the shipped files, whole or with a place filled in."""

from pathlib import Path

import pytest
import yaml

from spanreplay.cli.collector_config_command import NAMES, folder
from support.command_line import CommandLine

SHIPPED = Path(__file__).parents[3] / "collector-config"


def test_every_configuration_can_be_printed(spanreplay: CommandLine) -> None:
    assert {path.stem for path in SHIPPED.glob("*.yaml")} == set(NAMES)
    for name in NAMES:
        assert spanreplay("collector-config", name).out == (SHIPPED / f"{name}.yaml").read_text("utf-8")
    assert spanreplay("collector-config", "dev", "--json").json["text"] == (SHIPPED / "dev.yaml").read_text("utf-8")


def test_without_a_name_it_says_which_there_are(spanreplay: CommandLine) -> None:
    done = spanreplay("collector-config")
    assert [line.split()[0] for line in done.out.splitlines()] == list(NAMES)
    listed = spanreplay("collector-config", "--json").json["configurations"]
    assert [entry["name"] for entry in listed] == list(NAMES)
    assert all(entry["for"] for entry in listed)
    said = {entry["name"]: entry["for"] for entry in listed}
    assert said["jaeger"] == "Jaeger 2.13 or later, traces in memory"
    assert said["docker-compose"].endswith("or both (profiles jaeger, tempo, full)"), "a sentence, though it goes on in the next line"


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ("https://tempo.example/otlp", "https://tempo.example/otlp"),
        ("http://jaeger:4318/v1/traces", "http://jaeger:4318"),
        ("localhost:4318", "http://localhost:4318"),
        ("http://[::1]:4318/", "http://[::1]:4318"),
    ],
)
@pytest.mark.parametrize("name", ["dev", "gateway", "replay-from-file", "second-view"])
def test_the_place_to_look_at_is_filled_in(spanreplay: CommandLine, name: str, given: str, filled: str) -> None:
    done = spanreplay("collector-config", name, "--endpoint", given)
    exporters = yaml.safe_load(done.out)["exporters"]
    (endpoint,) = (settings["endpoint"] for settings in exporters.values() if "endpoint" in settings)
    assert endpoint.endswith(f"VIEW_ENDPOINT:-{filled}}}")


def test_the_gateways_are_filled_in(spanreplay: CommandLine) -> None:
    printed = yaml.safe_load(spanreplay("collector-config", "agent-loadbalance", "--endpoint", "gw.example:5317").out)
    dns = printed["exporters"]["load_balancing"]["resolver"]["dns"]
    assert dns == {"hostname": "${env:GATEWAY_HOST:-gw.example}", "port": "${env:GATEWAY_PORT:-5317}"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gateway", "--endpoint", "grpc://jaeger:4317"], "HTTP is usually on port 4318"),
        (["gateway", "--endpoint", "http://jaeger:4317"], "HTTP is usually on port 4318"),
        (["gateway", "--endpoint", "http://a}b"], "wanted OTLP over HTTP"),
        (["gateway", "--endpoint", "http://a:b"], "wanted OTLP over HTTP"),
        (["gateway", "--endpoint", "ftp://a"], "wanted OTLP over HTTP"),
        (["gateway", "--endpoint", ""], "wanted OTLP over HTTP"),
        (["agent-loadbalance", "--endpoint", "a/b"], "such as gateway:4317"),
        (["agent-loadbalance", "--endpoint", "grpcs://gateway:4317"], "such as gateway:4317"),
        (["agent-loadbalance", "--endpoint", "http://gateway:4318"], "which is OTLP over HTTP"),
        (["jaeger", "--endpoint", "http://a"], "these do: dev, gateway"),
        (["--endpoint", "http://a"], "of which configuration?"),
        (["dev", "--all", "there"], "takes no NAME"),
        (["nothing"], "'dev'"),
    ],
)
def test_what_cannot_be_is_said(spanreplay: CommandLine, arguments: list[str], said: str) -> None:
    done = spanreplay("collector-config", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_all_of_them_go_into_a_folder_and_nothing_is_overwritten(spanreplay: CommandLine, tmp_path: Path) -> None:
    there = tmp_path / "made" / "here"
    assert spanreplay("collector-config", "--all", there).code == 0
    assert {path.relative_to(there): path.read_bytes() for path in there.rglob("*") if path.is_file()} == {
        path.relative_to(SHIPPED): path.read_bytes() for path in SHIPPED.rglob("*") if path.is_file()
    }
    assert spanreplay("collector-config", "--all", there).code == 0, "the same files once more"
    (there / "dev.yaml").write_text("mine")
    (there / "README.md").unlink()
    done = spanreplay("collector-config", "--all", there)
    assert done.code == 2
    assert "dev.yaml" in done.err
    assert not (there / "README.md").exists()


def test_the_files_of_the_package_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert folder() == SHIPPED
    monkeypatch.setattr("spanreplay.cli.collector_config_command.__file__", str(tmp_path / "collector_config_command.py"))
    (tmp_path / "configurations").mkdir()
    assert folder() == tmp_path / "configurations"
