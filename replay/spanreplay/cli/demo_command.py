"""``spanreplay demo``."""

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from spanreplay.cli.options import check_kept, common, print_json, print_text, quiet, say, store_path
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.replay.model import Run
    from spanreplay.replay.reexecution.engine import ReplayResult


@click.command("demo")
@common
def command(store: Path | None, as_json: bool) -> None:
    """Record a small agent, replay it, change one word of its prompt, try to send its e-mail again.

    No keys, no network. The run stays in the store, to look at with the other commands. -q prints only whether each part worked.

    \b
    spanreplay demo
    """  # noqa: D301
    path = store_path(store)
    check_kept(path)
    shown = _play(path)
    checks = shown.checks()
    if as_json:
        print_json(
            {
                "schema": 1,
                "checks": checks,
                "run": shown.run.to_json(),
                "replays": [r.verdict.to_json() for r in (shown.same, shown.changed, shown.again)],
            }
        )
    elif quiet():
        print_text("\n".join(f"{name.replace('_', ' ')}: {'yes' if ok else 'no'}" for name, ok in checks.items()))
    else:
        _tell(shown)
        say(f"the run is kept in {path}: spanreplay show {short_id(shown.run.run_id)}")
    if not all(checks.values()):
        raise click.ClickException("the demo did not show what it should: " + ", ".join(k for k, ok in checks.items() if not ok))


class _Shown(NamedTuple):
    """What the demonstration has to show."""

    run: "Run"
    same: "ReplayResult"
    """The same code again."""
    changed: "ReplayResult"
    """With one word of the prompt changed."""
    again: "ReplayResult"
    """With an e-mail that is sent past the recorded tool."""
    sent: int
    """E-mails while it was recorded."""
    sent_after_replays: int
    """E-mails before that last replay, and after it."""
    sent_at_last: int

    def checks(self) -> dict[str, bool]:
        """Whether each part worked."""
        changed = self.changed.differences
        return {
            "recorded": self.sent == 1 and len(self.run.steps) == 9,
            "replayed_equal": self.same.equal and self.same.value == self.run.output,
            "changed_word_found": [d.field for d in changed] == ["messages[0].content"] and changed[0].step == 1,
            "email_not_sent": self.sent_after_replays == 1 and self.sent_at_last == 1 and len(self.again.verdict.refusals) == 1,
        }


def _play(path: Path) -> _Shown:
    from spanreplay import recording
    from spanreplay.cli.about import about
    from spanreplay.cli.demo_agent import PROMPT, TripAgent
    from spanreplay.cli.target import load
    from spanreplay.replay.reexecution.engine import Replayer

    with tempfile.TemporaryDirectory(prefix="spanreplay-demo-") as folder:
        outbox = Path(folder)

        def mails() -> int:
            return len(list(outbox.iterdir()))

        recording.start(store=path)
        try:
            asyncio.run(TripAgent(outbox).run())
        finally:
            recording.stop()
        sent = mails()
        loaded = load("last", path)
        about(loaded)
        run = loaded.one()
        replayer = Replayer(run)

        same = replayer.replay(TripAgent(outbox).run)
        changed = replayer.replay(TripAgent(outbox, template=PROMPT.replace("careful", "generous")).run)
        sent_after_replays = mails()

        async def sends_again() -> str:
            agent = TripAgent(outbox)
            text = await agent.run()
            agent.deliver("ana@example.com", "Once more", "This goes past the tool that is recorded.")
            return text

        again = replayer.replay(sends_again)
        return _Shown(run, same, changed, again, sent, sent_after_replays, mails())


def _tell(shown: _Shown) -> None:
    from spanreplay.replay.reports.text import render_run
    from spanreplay.replay.reports.verdict import render_verdict

    run = shown.run
    print_text("Recorded: a small agent, its model scripted, its tools real.\n")
    print_text(render_run(run))
    print_text("\nReplayed: the same code again, every model and tool call answered from the record.\n")
    print_text(render_verdict(shown.same.verdict, [run]))
    print_text("\nOne word of the prompt changed: careful -> generous.\n")
    print_text(render_verdict(shown.changed.verdict, [run]))
    print_text("\nThe e-mail sent once more, past the recorded tool.\n")
    print_text(render_verdict(shown.again.verdict, [run]))
    print_text(f"\ne-mails sent: {shown.sent} while recording, {shown.sent_at_last - shown.sent} while replaying")
