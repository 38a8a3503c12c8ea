"""The versions in force at one step, recorded against live: its prompt, its tools as offered, its skills, its model and settings."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from spanreplay.boundary.scope import in_force
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.instrumentation.provider import by_name, recognise_parsed
from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.versions import step_versions
from spanreplay.replay.reexecution.diff import differences
from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.forms import parsed
from spanreplay.semconv.attributes import RUN_DEFINITION
from spanreplay.spans.record import Resource, Scope, SpanRecord

_FIELDS: Final = 20
_TEXT: Final = 20_000
"""Characters of a template that are kept as evidence."""


def step_changes(step: Step, live: LiveStep, asked: Json) -> list[dict[str, Any]]:
    """What has another version at a live call than at its recorded step.

    Each is ``{"kind": "prompt" | "tool" | "skill" | "model" | "setting", "name", "recorded", "actual"}``, a side that has it not being
    ``None``; a prompt has its two ``templates`` too, where they are known.

    Args:
        step: the recorded step.
        live: the call.
        asked: its comparable input, as a JSON value.
    """
    now = _versions(step, live, asked)
    found = [*_of_prompt(step.versions.get("prompt"), now.get("prompt"))]
    if step.versions.get("tools") and now.get("tools"):
        found += _of_named("tool", step.versions["tools"], now["tools"], "schema_digest")
    found += _of_named("skill", step.versions.get("skills"), now.get("skills"), "digest")
    was, is_now = _dict(step.versions.get("model")), _dict(now.get("model"))
    if was and is_now:
        if was.get("request") != is_now.get("request"):
            found.append({"kind": "model", "name": "model", "recorded": was.get("request"), "actual": is_now.get("request")})
        before, after = _dict(was.get("params")), _dict(is_now.get("params"))
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                found.append({"kind": "setting", "name": name, "recorded": before.get(name), "actual": after.get(name)})
    return found


def agent_changes(run: Run, root: LiveStep) -> list[dict[str, Any]]:
    """What an agent is defined by otherwise than when its run was recorded: its instructions, its settings, its tools.

    One for each value: ``{"kind": "agent", "name", "field": where the two definitions differ, "added", "removed": words that differ}``.

    Args:
        run: the recorded run.
        root: the step of the live one.
    """
    now = parsed(root.attributes.get(RUN_DEFINITION))
    if now is None or run.definition is None or run.is_command:
        return []
    made = []
    for found in islice(differences(run.definition, now), _FIELDS):
        removed, added = fragments(found.recorded, found.actual)
        made.append({"kind": "agent", "name": run.agent_name or root.call.name, "field": found.path, "removed": removed, "added": added})
    return made


def _of_prompt(was: Json, now: Json) -> list[dict[str, Any]]:
    before, after = _dict(was), _dict(now)
    same = all(before.get(name) == after.get(name) for name in ("name", "version", "digest"))
    if same:
        return []
    templates = [str(side.get("template") or "")[:_TEXT] for side in (before, after)]
    return [
        {
            "kind": "prompt",
            "name": after.get("name") or before.get("name"),
            "recorded": _version(before),
            "actual": _version(after),
            "templates": templates,
        }
    ]


def _version(prompt: Mapping[str, Json]) -> str | None:
    return str(prompt.get("version") or str(prompt.get("digest") or "")[:19]) if prompt else None


def _of_named(kind: str, was: Json, now: Json, digest: str) -> list[dict[str, Any]]:
    before, after = (
        {str(_dict(i).get("name")): _dict(i).get(digest) for i in side} if isinstance(side, list) else {} for side in (was, now)
    )
    return [
        {"kind": kind, "name": name, "recorded": before.get(name), "actual": after.get(name)}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _versions(step: Step, live: LiveStep, asked: Json) -> dict[str, Json]:
    given = {**in_force.get(), **_view(step, asked), **live.call.attributes}
    clean = live.session.redactor.text
    attributes = {name: clean(value)[0] if isinstance(value, str) else value for name, value in given.items()}
    span = SpanRecord(
        trace_id=live.trace_id,
        span_id=live.span_id,
        parent_span_id=None,
        name="",
        kind=1,
        start_ns=0,
        attributes=attributes,
        resource=Resource(),
        scope=Scope(name=""),
    )
    return step_versions(span, Fields(attributes))


def _view(step: Step, asked: Json) -> Mapping[str, Any]:
    """What a request says in the words of the conventions: a replay that nobody watches does not work it out for each call."""
    if not isinstance(asked, dict) or "body" not in asked:
        return {}
    provider = by_name(step.wire.provider) if step.wire is not None and step.wire.provider is not None else None
    if provider is None:
        found = recognise_parsed(str(asked.get("method", "POST")), str(asked.get("url", "")), asked["body"])
        return {} if found is None else found[0].request(found[1]).attributes
    return provider.request(provider.asked(str(asked.get("url", "")), asked["body"])).attributes


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
