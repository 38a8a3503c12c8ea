"""Runs scenarios with one driver."""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from conformance.driver import Difference
from conformance.judging import Phase, Verdict, judge
from conformance.model import Conversation, ModelServer
from conformance.outside import Outside
from conformance.scenario import Scenario
from conformance.world import MARK, Job

TESTS: Final = Path(__file__).resolve().parent.parent
_HASH_SEEDS: Final = {False: "1", True: "2"}
"""Of the processes that record, and of those that replay."""


class DriverFailed(Exception):
    """A driver cannot be loaded, or its process has died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that one driver was seen to do."""

    name: str
    version: str
    mode: str
    python: str
    sdks: dict[str, str]
    date: str
    verdicts: dict[str, Verdict]

    def to_json(self) -> dict[str, Any]:
        """For the results file."""
        verdicts = {name: verdict.to_json() for name, verdict in self.verdicts.items()}
        about = {"name": self.name, "version": self.version, "mode": self.mode, "python": self.python, "sdks": self.sdks}
        return {**about, "date": self.date, "scenarios": verdicts}


class _Host:
    """The two processes of a driver, :mod:`conformance.host`: one records, one replays."""

    def __init__(self, python: str, driver: Path, certificate: Path, *, replay: bool) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "SPANREPLAY_", "PYTHON"))}
        added = {"PYTHONPATH": str(TESTS), "PYTHONHASHSEED": _HASH_SEEDS[replay]}
        if certificate.exists():
            added["SSL_CERT_FILE"] = str(certificate)
        try:
            self._process = subprocess.Popen(
                [python, "-m", "conformance.host", str(driver)],
                env=kept | added,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise DriverFailed(f"{python} cannot be run: {error.strerror}") from error
        self.says = self._read()
        if "failed" in self.says:
            self.close()
            raise DriverFailed(self.says["failed"])

    def do(self, job: Job) -> bool:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died, and what it said last is read below
            self._process.stdin.write(json.dumps(job.to_json()) + "\n")
            self._process.stdin.flush()
        return bool(self._read()["ended"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            said = self._process.stderr.read().strip().splitlines()
            raise DriverFailed(f"its process has ended{f': {said[-1]}' if said else ''}")
        return json.loads(line)

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.communicate()


def _one_certificate(file: Path) -> Path:
    """Each client of an SDK reads all certificates that the machine trusts, of which loopback needs none: one will do."""
    trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
    if trusted:
        file.write_text(ssl.DER_cert_to_PEM_cert(trusted[0]), encoding="ascii")
    return file


@contextmanager
def _hosts(python: str, driver: Path, folder: Path, *, one: bool) -> Iterator[dict[bool, _Host]]:
    certificate = _one_certificate(folder / "certificate.pem")
    with ExitStack() as stack:
        records = _Host(python, driver, certificate, replay=False)
        stack.callback(records.close)
        replays = records if one else _Host(python, driver, certificate, replay=True)
        if not one:
            stack.callback(replays.close)
        yield {False: records, True: replays}


def run(
    driver: Path,
    wanted: Iterable[Scenario],
    *,
    python: str = sys.executable,
    one_hash_seed: bool = False,
    on_verdict: Callable[[Scenario, str, str], None] = lambda scenario, status, detail: None,
) -> Results:
    """Run scenarios with a driver.

    Args:
        driver: its file.
        wanted: the scenarios.
        python: of the environment that has the recorder, and the SDKs.
        one_hash_seed: recordings and replays have the same, which is quicker by the time that importing the SDKs takes.
        on_verdict: told of each scenario, its status and the detail, as it is found.

    Raises:
        DriverFailed: the driver cannot be loaded.
    """
    verdicts: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, ModelServer() as model, ExitStack() as stack:
        outside = stack.enter_context(Outside(Path(folder) / "outside"))
        hosts = stack.enter_context(_hosts(python, driver.resolve(), Path(folder), one=one_hash_seed))
        says = hosts[False].says
        for scenario in wanted:
            reason = next((says["cannot"][need] for need in sorted(scenario.needs) if need in says["cannot"]), None)
            if reason is not None:
                verdicts[scenario.name] = Verdict(status="skipped", detail=reason)
            else:
                place = Path(folder) / scenario.name
                found = _Try(scenario, driver.resolve(), hosts, model, outside, place).verdict()
                verdicts[scenario.name] = replace(found, detail=found.detail.replace(folder, "…"))
            on_verdict(scenario, verdicts[scenario.name].status, verdicts[scenario.name].detail)
    about: dict[str, Any] = {name: says[name] for name in ("name", "version", "mode", "python", "sdks")}
    return Results(**about, date=datetime.now(UTC).date().isoformat(), verdicts=verdicts)


class _Try:
    """One scenario with one driver."""

    def __init__(
        self, scenario: Scenario, driver: Path, hosts: dict[bool, _Host], model: ModelServer, outside: Outside, folder: Path
    ) -> None:
        self._scenario = scenario
        self._driver = driver
        self._hosts = hosts
        self._outside = outside
        self._folder = folder
        self._kept = folder / "recording"
        self._kept.mkdir(parents=True)
        self._conversation = Conversation(scenario.model)
        self._url = model.add(scenario.name, self._conversation)

    def verdict(self) -> Verdict:
        """Record, replay, judge."""
        recorded = self._phase(replay=False)
        first = judge(self._scenario, recorded, recorded)
        if first.status == "fail" and first.detail.startswith("while recording"):
            return first
        if self._scenario.expect != "noticed":
            return judge(self._scenario, recorded, self._phase(replay=True))
        copy = self._folder / "copy"
        shutil.copytree(self._kept, copy, symlinks=True)
        control = self._phase(replay=True)
        shutil.rmtree(self._kept)
        copy.rename(self._kept)
        return judge(self._scenario, recorded, self._phase(replay=True, changed=True), control)

    def _phase(self, *, replay: bool, changed: bool = False) -> Phase:
        result = self._folder / f"{'replay' if replay else 'record'}{'-changed' if changed else ''}.json"
        job = Job(
            scenario=self._scenario.name,
            driver=str(self._driver),
            replay=replay,
            changed=changed,
            folder=str(self._kept),
            url=self._url,
            outside=str(self._outside.folder),
            mail=self._outside.port,
            result=str(result),
        )
        self._outside.acts()
        self._conversation.begin()
        ended = self._hosts[replay].do(job)
        requests = self._conversation.end()
        died = {"error": "its process died"} if ended else {}
        said: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else died
        printed = Path(job.err).read_text(encoding="utf-8", errors="replace") if Path(job.err).exists() else ""
        return Phase(
            ended=ended,
            value=said.get("value"),
            error=said.get("error"),
            differences=[Difference(**d) for d in said.get("differences", ())],
            requests=requests,
            bodies=[line.removeprefix(MARK) for line in printed.splitlines() if line.startswith(MARK)],
            acts=self._outside.acts(),
        )
