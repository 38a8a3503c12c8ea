"""``spanreplay collector-config``."""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from spanreplay.cli.options import WrongUse, common, many, print_json, print_text, say

NAMES: Final = (
    "dev",
    "gateway",
    "second-view",
    "into-store",
    "agent-loadbalance",
    "replay-from-file",
    "jaeger",
    "tempo",
    "docker-compose",
)
_VIEW: Final = re.compile(r"(\$\{env:(?:(?:SECOND_)?VIEW|STORE)_ENDPOINT:-)[^}]*(?=\})")
_GATEWAY_HOST: Final = re.compile(r"(\$\{env:GATEWAY_HOST:-)[^}]*(?=\})")
_GATEWAY_PORT: Final = re.compile(r"(\$\{env:GATEWAY_PORT:-)[^}]*(?=\})")
_PLAIN: Final = re.compile(r"[A-Za-z0-9.:/_~%\[\]-]+")
"""What may stand in a URL that is put into YAML, inside ``${env:…}``."""


def folder() -> Path:
    """Where the configurations are: in the installed package, else in the checkout that this runs from."""
    installed = Path(__file__).parent / "configurations"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "collector-config"


def filled_in(text: str, endpoint: str) -> str | None:
    """A configuration with the place that it sends to; ``None`` where it sends nowhere.

    Raises:
        ValueError: the endpoint is none; says what was wanted.
    """
    if _VIEW.search(text):
        return _VIEW.sub(lambda found: found[1] + _http(endpoint), text)
    if _GATEWAY_HOST.search(text):
        host, port = _host_and_port(endpoint)
        return _GATEWAY_PORT.sub(lambda found: found[1] + port, _GATEWAY_HOST.sub(lambda found: found[1] + host, text))
    return None


def _http(endpoint: str) -> str:
    wanted = f"wanted OTLP over HTTP, such as http://localhost:4318, found {endpoint!r}"
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(wanted) from error
    if parts.scheme in ("grpc", "grpcs") or port == 4317:
        raise ValueError(f"{wanted}, which is OTLP over gRPC; HTTP is usually on port 4318")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or not _PLAIN.fullmatch(url):
        raise ValueError(wanted)
    return url.rstrip("/").removesuffix("/v1/traces")


def _host_and_port(endpoint: str) -> tuple[str, str]:
    wanted = f"wanted the name of the gateways and their gRPC port, such as gateway:4317, found {endpoint!r}"
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"grpc://{endpoint}")
        host, port = parts.hostname, parts.port or 4317
    except ValueError as error:
        raise ValueError(wanted) from error
    if port == 4318:
        raise ValueError(f"{wanted}, which is OTLP over HTTP; gRPC is usually on port 4317")
    if parts.scheme not in ("grpc", "http") or not host or parts.path.strip("/") or not _PLAIN.fullmatch(host):
        raise ValueError(wanted)
    return host, str(port)


@click.command("collector-config")
@click.argument("name", type=click.Choice(NAMES), required=False)
@click.option("--endpoint", metavar="URL", help="Where it sends to: http://jaeger:4318; of agent-loadbalance: gateway:4317.")
@click.option(
    "--all",
    "target",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write all of them into a folder, with their README and what Grafana needs.",
)
@common
def command(name: str | None, endpoint: str | None, target: Path | None, store: Path | None, as_json: bool) -> None:
    """Print a configuration of the OpenTelemetry Collector, Jaeger or Tempo; without a name, say which there are.

    \b
    spanreplay collector-config dev --endpoint http://localhost:14318 > dev.yaml
    spanreplay collector-config --all collector-config
    """  # noqa: D301
    texts = {known: (folder() / f"{known}.yaml").read_text(encoding="utf-8") for known in NAMES}
    if target is not None:
        if name is not None or endpoint is not None:
            raise WrongUse("--all writes every file as it is; it takes no NAME and no --endpoint")
        written = _write_all(target)
        if as_json:
            print_json({"schema": 1, "folder": str(target), "files": written})
        else:
            say(f"{target}: {many(len(written), 'file')}")
        return
    if name is None:
        if endpoint is not None:
            raise WrongUse(f"--endpoint: of which configuration? {', '.join(NAMES)}")
        _print_list(texts, as_json=as_json)
        return
    text = texts[name]
    if endpoint is not None:
        try:
            made = filled_in(text, endpoint)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--endpoint") from error
        if made is None:
            senders = [known for known, sends in texts.items() if _VIEW.search(sends) or _GATEWAY_HOST.search(sends)]
            raise WrongUse(f"{name} sends to no --endpoint; these do: {', '.join(senders)}")
        text = made
    if as_json:
        print_json({"schema": 1, "name": name, "text": text})
    else:
        print_text(text.rstrip("\n"))


def _print_list(texts: Mapping[str, str], *, as_json: bool) -> None:
    lines = {known: _purpose(text) for known, text in texts.items()}
    if as_json:
        print_json({"schema": 1, "configurations": [{"name": known, "for": line} for known, line in lines.items()]})
    else:
        wide = max(map(len, lines))
        print_text("\n".join(f"{known:<{wide}}  {line}" for known, line in lines.items()))


def _purpose(text: str) -> str:
    """The first sentence of the comment that a configuration begins with, without the command that it ends with."""
    comment = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    sentence = re.match(r".+?(?=[.;]\s|:\s\s|$)", " ".join(line.lstrip("# ") for line in comment))
    return sentence[0].rstrip(".") if sentence is not None else ""


def _write_all(target: Path) -> list[str]:
    source = folder()
    files = {path.relative_to(source): path.read_bytes() for path in sorted(source.rglob("*")) if path.is_file()}
    changed = [str(name) for name, data in files.items() if (target / name).exists() and (target / name).read_bytes() != data]
    if changed:
        raise WrongUse(f"{target} has other files of the same names, which are left alone: {', '.join(changed)}")
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [str(name) for name in files]
