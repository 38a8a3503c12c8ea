"""The versions in force at a step, and all those of a run in order of first use."""

from collections.abc import Iterable, Mapping
from typing import Final

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.replay.model import Json, Step, Versions
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import OLD_SYSTEM, definitions, params
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

REVISIONS: Final = (a.CODE_COMMIT, "vcs.repository.ref.revision")
_MODEL: Final = frozenset({a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL})
_PROMPT: Final = frozenset({a.GEN_AI_PROMPT_NAME, a.GEN_AI_PROMPT_VERSION, a.PROMPT_DIGEST, a.PROMPT_TEMPLATE})
_TOOL: Final = frozenset({a.TOOL_VERSION, a.TOOL_SCHEMA_DIGEST, a.TOOL_CODE_DIGEST})
"""Attributes without which nothing of the kind is named: most spans have none, and are asked once."""


def step_versions(span: SpanRecord, fields: Fields) -> dict[str, Json]:
    """The versions that one span does name: ``model``, ``prompt``, ``tool``, ``tools``, ``skill``, ``skills``, ``code``."""
    found: dict[str, Json] = {}
    given = fields.attributes
    if not _MODEL.isdisjoint(given):
        model = {
            "provider": fields.text(a.GEN_AI_PROVIDER_NAME, OLD_SYSTEM),
            "request": fields.text(a.GEN_AI_REQUEST_MODEL),
            "response": fields.text(a.GEN_AI_RESPONSE_MODEL),
            "params": {name: value for name, value in params(fields).items() if name != "model"} or None,
        }
        _put(found, "model", model, needs=("request", "response"))
    if not _PROMPT.isdisjoint(given):
        prompt = {
            "name": fields.text(a.GEN_AI_PROMPT_NAME),
            "version": fields.text(a.GEN_AI_PROMPT_VERSION),
            "digest": fields.text(a.PROMPT_DIGEST),
            "template": fields.text(a.PROMPT_TEMPLATE),
        }
        _put(found, "prompt", prompt)
    if not _TOOL.isdisjoint(given):
        tool = {
            "name": fields.text(a.GEN_AI_TOOL_NAME),
            "version": fields.text(a.TOOL_VERSION),
            "schema_digest": fields.text(a.TOOL_SCHEMA_DIGEST),
            "code_digest": fields.text(a.TOOL_CODE_DIGEST),
        }
        _put(found, "tool", tool, needs=("version", "schema_digest", "code_digest"))
    if a.GEN_AI_TOOL_DEFINITIONS in given:
        tools = offered(fields.json(a.GEN_AI_TOOL_DEFINITIONS, strict=True))
        if tools:
            found["tools"] = tools
    if a.GEN_AI_SKILL_NAME in given:
        skill = {
            "name": fields.text(a.GEN_AI_SKILL_NAME),
            "source": fields.text(a.GEN_AI_SKILL_SOURCE_URI),
            "digest": fields.text(a.SKILL_DIGEST),
        }
        _put(found, "skill", skill, needs=("name",))
    if a.SKILLS in given:
        loaded = fields.json(a.SKILLS, strict=True)
        if isinstance(loaded, list) and loaded:
            found["skills"] = loaded
    commit = fields.text(*REVISIONS) or Fields(span.resource.attributes).text(*REVISIONS)
    if commit is not None:
        found["code"] = {"commit": commit}
    return found


def _put(found: dict[str, Json], key: str, value: Mapping[str, Json], needs: tuple[str, ...] = ()) -> None:
    present = {name: part for name, part in value.items() if part is not None}
    if any(name in present for name in needs or value):
        found[key] = present


def offered(tools: Json) -> list[Json]:
    """Tools as they were offered to a model: ``{"name", "schema_digest"}`` of each. One and the same tool has one digest in every dialect.

    Args:
        tools: their definitions, however they are written.
    """
    return [
        {"name": tool.get("name"), "schema_digest": digest(canonical_json(tool))} for tool in definitions(tools) if isinstance(tool, dict)
    ]


def run_versions(root: Mapping[str, Json], steps: Iterable[Step], definition: Json, working_tree: Json = None) -> Versions:
    """The versions of a run: what its root names, then what its steps name, each once.

    Args:
        root: of the span that is the run.
        steps: of the run.
        definition: of the run; that of a recorded command has ``versions``.
        working_tree: ``spanreplay.run.code`` of a recorded command.
    """
    lists: dict[str, dict[str, Json]] = {"prompt": {}, "tools": {}, "model": {}, "skills": {}}
    code: Json = None
    for named in (root, *(step.versions for step in steps)):
        for key, into in (("prompt", "prompt"), ("tool", "tools"), ("model", "model"), ("skill", "skills")):
            if key in named:
                lists[into].setdefault(canonical_json(named[key]), named[key])
        for tool in named.get("tools", ()):
            lists["tools"].setdefault(canonical_json(tool), tool)
        code = code or named.get("code")
    described = _member(definition, "versions")
    if isinstance(working_tree, dict):
        code = {name: working_tree.get(name) for name in ("commit", "dirty", "digest")}
    dependencies = {name: value for name, value in _member(described, "dependencies").items() if name != "packages"}
    return Versions(
        prompt=tuple(lists["prompt"].values()),
        tools=tuple(lists["tools"].values()),
        model=tuple(lists["model"].values()),
        skills=tuple(lists["skills"].values()),
        code=code or described.get("code"),
        dependencies=dependencies or None,
    )


def _member(value: Json, name: str) -> dict[str, Json]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
