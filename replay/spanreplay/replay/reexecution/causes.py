"""Which version change explains a difference.

Both sides are compared: the versions in force at the step (prompt, tools as offered, skills, model, settings) and those of the whole
command (code, dependencies, variables, arguments, Python, machine). A change explains a difference where it is seen to have reached it:

- the field that differs is the changed thing itself;
- or the words that differ stand in what has changed: of a prompt, of a skill, in lines of code, in the new value of the variable, in the
  files of the dependency;
- or the line that made the call has changed;
- or, where nothing but dependencies has changed, one of them made the call.

Where several have the words, one that has those of both sides, the recorded and the actual, counts before one that has those of one side
only. Several that have different words made a part each. Where only one thing has changed at all, that is said so. Else several may have
done it, and which cannot be told: nothing is guessed.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from spanreplay.boundary.clock_reads import MOST_OF_ONE
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution import temporary, unmade
from spanreplay.replay.reexecution.changed_places import Sought, places
from spanreplay.replay.reexecution.changed_texts import ChangedText, changed_texts, skill_said
from spanreplay.replay.reexecution.code_changes import ChangedLine, CodeChanges, code_changes
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.looking import SHORT, Looked, holds
from spanreplay.replay.reexecution.versions_now import Change, Comparison, recorded_command
from spanreplay.replay.reexecution.workers import queued_items, timed_items, tireless_reader, unnamed_items

NONE: Final = "no version in the record explains it: the agent's own code, or what it was given, has changed"
_NOT_HELD: Final = "what a replay does not hold (chance, time, state that a tool changed): replay --check-determinism 3 looks for it"
_SAME: Final = f"no version that is kept has changed, so it comes from {_NOT_HELD}"
_SAME_FILES: Final = f"no version that is kept has changed, so it comes from a file that is not kept, or from {_NOT_HELD}"

_EACH: Final = "it cannot be told which of these it was, words that differ stand in each of them: "
_SKILL: Final = "io skill "
"""Beginning of the name of a step that loads a skill."""
_ANY: Final = "it cannot be told which of these it was: "
_CODE: Final = frozenset({"commit", "diff"})

_SEEN, _LINE, _CALLED, _POSSIBLE = 3, 2, 1, 0
"""How a change is tied to a difference: by the words that differ, by the line of the call, by being called from there, or not at all."""
_INSTRUCTIONS: Final = re.compile(r"^(system|instructions|systemInstruction|system_instruction|preamble)\b")
_MESSAGE: Final = re.compile(r"^(?:messages|input)\[(\d+)\]")
_TOOLS: Final = re.compile(r"^(?:tools|toolConfig|functions)\b(?:\.tools)?(?:\[(\d+)\])?")
_SETTINGS: Final = re.compile(
    r"^(temperature|top_p|top_k|max_\w*tokens|seed|stop\w*|reasoning\w*|thinking|response_format|text|tool_choice|parallel_tool_calls"
    r"|frequency_penalty|presence_penalty|service_tier|stream\w*|n|options|generationConfig|inferenceConfig)\b"
)
_OF_OTHERS: Final = re.compile(rf"(?:{_TOOLS.pattern}|{_SETTINGS.pattern}|^model(?:\.|$)|^url$)")
"""Fields that no text stands in."""
_LINE_LENGTH: Final = 60
_NAMED: Final = 4
_FILES: Final = 300
_BYTES: Final = 8 * 2**20
_READ: Final = frozenset({".py", ".txt", ".md", ".json", ".yaml", ".yml", ".toml", ".jinja", ".j2"})


@dataclass(frozen=True, slots=True)
class _Hit:
    """A change, as it is tied to a difference."""

    kind: str
    text: str
    strength: int
    file: str | None = None
    """Where in the code it is."""
    both: bool | None = None
    """Whether what was recorded stands in its old side and what is there now in its new one; ``None`` where a side is not known."""
    words: frozenset[str] = frozenset()
    """Which of the words that differ it has, where that is known."""
    carriers: Mapping[str, str] = field(default_factory=dict)
    """The changed files of the code that a text stands in, and what to say of each."""


class Causes:
    """Explains the differences of one replay.

    Args:
        runs: the recorded runs.
        comparison: the recorded versions against the present ones, where they are known.
        command: the run that knows the recorded versions; by default it is looked for among the runs.
        taken: names of temporary files that somebody else had, see :mod:`spanreplay.replay.reexecution.temporary`.
        unmade: exceptions of another class than recorded, see :mod:`spanreplay.replay.reexecution.unmade`.
        differences: all of the replay: that of a skill tells what has changed in its files.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        comparison: Comparison | None = None,
        command: Run | None = None,
        taken: Sequence[Mapping[str, str]] = (),
        unmade: Sequence[Mapping[str, Any]] = (),
        differences: Sequence[Difference] = (),
    ) -> None:
        found = [(difference.name, (difference.evidence or {}).get("skill")) for difference in differences]
        self._skills = {name.removeprefix(_SKILL): texts for name, texts in found if texts is not None}
        self._taken = taken
        self._unmade = unmade
        self._runs = runs
        self._command = command or recorded_command(runs)
        self._comparison = comparison
        self._texts: dict[str, str] = {}

    @cached_property
    def _code(self) -> CodeChanges | None:
        if self._command is None or self._comparison is None:
            return None
        return code_changes(self._command.code, self._comparison.code)

    def explain(self, difference: Difference) -> Difference:
        """The difference with its cause: the change that reached it, or that none can be told."""
        if difference.cause is not None or difference.same_as is not None or difference.kind in ("not_replayable", "beyond"):
            return difference
        if (taken := temporary.cause(self._taken, difference.recorded, difference.actual)) is not None:
            return replace(difference, cause_kind="name", cause=taken)
        if (error := unmade.cause(self._unmade, difference)) is not None:
            return replace(difference, cause_kind="error_class", cause=error)
        what, texts = self._what(difference), list(self._texts_of(difference))
        seen = [text for text in texts if text.strength == _SEEN]
        hits = [*(text for text in texts if text.strength == _POSSIBLE and not text.carriers), *self._hits(difference, what)]
        best = max((hit.strength for hit in hits), default=_POSSIBLE)
        if best == _CALLED and any(hit.kind != "dependency" for hit in hits):
            best = _POSSIBLE
        reached = [hit for hit in hits if hit.strength == best > _POSSIBLE]
        if seen:
            what, reached = None, _merged(seen, [hit for hit in reached if best == _SEEN])
        told = self._told(what, _in_order(_sided(reached), difference), hits)
        if told is None:
            if difference.kind != "input" and self._comparison is None:
                return difference
            told = "none", self._nothing() + self._by_chance(difference)
        return replace(difference, cause_kind=told[0], cause=told[1])

    def _nothing(self) -> str:
        """What to say where no change is known."""
        if self._comparison is None or set(self._comparison.unknown) - {"code"}:
            return NONE
        if not self._comparison.unknown:
            return _SAME
        return _SAME_FILES if self._comparison.same_files else NONE

    def _by_chance(self, difference: Difference) -> str:
        run = next((run for run in self._runs if run.run_id == difference.run_id), None)
        if run is None:
            return ""
        if (call := unnamed_items(run)) is not None:
            return (
                f"; or workers took other items from a queue, and nothing tells whose {call} it is: with scope(key): around each item would"
            )
        if (call := timed_items(run, difference.step)) is not None:
            times = "the times that they read are kept by worker: with scope(key): around each item they are the item's"
            return f"; or workers took other items from a queue for their {call}, and {times}"
        if queued_items(run, difference.name):
            why = "by timers of random length, or by threads, which a replay does not hold"
            advice = "with scope(key): around each item its calls are the item's"
            return f"; or workers took other items from a queue for their {difference.name}, {why}: {advice}"
        if (reader := tireless_reader(run, difference.step)) is not None:
            return f"; or {reader} read the clock again after the first {MOST_OF_ONE} times, which are all that is kept of it"
        return ""

    def _told(self, what: _Hit | None, reached: list[_Hit], hits: list[_Hit]) -> tuple[str, str] | None:
        code = [hit for hit in reached if hit.kind in _CODE or hit.kind == "file"]
        others = [hit for hit in reached if hit not in code and hit.strength == _SEEN]
        each = _EACH if any(hit.strength == _SEEN for hit in reached) else _ANY
        if what is not None and what.strength == _SEEN:  # the field is the changed thing: what it came with is told beside it
            beside = others + code
            if len(beside) > 1:
                return what.kind, f"{what.text}; {each}{_listed(beside)}"
            return what.kind, what.text + (f": {beside[0].text}" if beside else "")
        if reached:
            if what is not None and len(code) == len(reached):
                return what.kind, f"{what.text}: {code[0].text}" if len(code) == 1 else f"{what.text}; {each}{_listed(code)}"
            if len(reached) == 1:
                return reached[0].kind, reached[0].text
            if _apart(reached):
                return reached[0].kind, f"each of these has made a part of it: {_listed(reached)}"
            return "untold", f"{each}{_listed(reached)}"
        if what is not None:
            more = f"; {_listed(hits)}, and whether that did it cannot be told" if len(hits) > 1 else f": {hits[0].text}" if hits else ""
            return what.kind, what.text + more
        if len(hits) == 1:
            return hits[0].kind, f"{hits[0].text}; nothing else that is kept has changed"
        if hits:
            return "untold", f"it cannot be told which of these it was, none of them is seen in what differs: {_listed(hits)}"
        return None

    # ---- what differs -----------------------------------------------------------------------------------------------

    def _what(self, difference: Difference) -> _Hit | None:
        """What the field that differs is, where it is something that has versions."""
        field, step = difference.field or "", self._step(difference)
        if difference.kind == "output" and difference.name.startswith(_SKILL):
            return _Hit("skill", skill_said(difference.name.removeprefix(_SKILL)), _SEEN)
        if difference.kind != "input" or not difference.name.startswith("model_call"):
            return None
        evidence = difference.evidence or {}
        changed: list[Mapping[str, Any]] = list(evidence.get("changed", ()))
        asked = step.input if step is not None and isinstance(step.input, dict) else {}
        if (tool := _TOOLS.match(field)) is not None:
            return _of_tools(changed, tool[1], asked, reordered=evidence.get("reordered") is True)
        if field == "model" or field.startswith("model.") or (field == "url" and any(c["kind"] == "model" for c in changed)):
            told = {"recorded": _unquoted(difference.recorded), "actual": _unquoted(difference.actual)}
            model = next((c for c in changed if c["kind"] == "model"), told)
            return _Hit("model", f"the model has changed{_arrow(model)}", _LINE)
        if _SETTINGS.match(field):
            return _Hit("setting", f"the model settings have changed: {field} {difference.recorded} → {difference.actual}", _LINE)
        system = _INSTRUCTIONS.match(field) is not None or _is_system(field, asked)
        prompt = next((c for c in changed if c["kind"] == "prompt"), None)
        if system:
            named = step.versions.get("prompt") if step is not None else None
            if isinstance(named, dict) and named.get("name") and prompt is None:
                return _Hit("instructions", f"the instructions have changed, and the prompt {_name(named)} is as it was", _LINE)
            return _Hit("prompt", "the prompt has changed since the run was recorded", _LINE)
        return None

    def _texts_of(self, difference: Difference) -> Iterator[_Hit]:
        """The texts with versions that have changed, as they are tied to a message that differs."""
        field, evidence = difference.field or "", difference.evidence or {}
        if difference.kind != "input" or not difference.name.startswith("model_call") or _OF_OTHERS.match(field):
            return
        added, removed = list(evidence.get("added", ())), list(evidence.get("removed", ()))
        changed: list[Mapping[str, Any]] = list(evidence.get("changed", ()))
        for text in changed_texts(changed, self._skills):
            words, both = text.seen(added, removed)
            carriers = dict(self._carriers(text))
            if words:
                yield _Hit(text.kind, text.said, _SEEN, both=both, words=words, carriers=carriers)
            elif text.kind != "instructions" and not self._is_unknown(text, field, difference):
                yield _Hit(text.kind, text.said, _POSSIBLE, carriers=carriers)
            elif text.kind == "prompt":
                yield _Hit(text.kind, text.said, _SEEN)
        for name in (c["name"] for c in changed if c["kind"] == "skill" and c["name"] not in self._skills):
            seen = self._in_skill(difference.run_id, name, removed)
            yield _Hit("skill", skill_said(name), _SEEN if seen else _POSSIBLE)

    def _is_unknown(self, text: ChangedText, field: str, difference: Difference) -> bool:
        """A prompt whose two templates are not both known, where the instructions differ."""
        step = self._step(difference)
        asked = step.input if step is not None and isinstance(step.input, dict) else {}
        return text.kind == "prompt" and not text.known and (_INSTRUCTIONS.match(field) is not None or _is_system(field, asked))

    def _carriers(self, text: ChangedText) -> Iterator[tuple[str, str]]:
        """The changed files of the code that a text stands in."""
        files = [] if self._comparison is None else [change for change in self._comparison.changed if change.kind == "file"]
        for change in files:
            if any(holds(_read(Path(change.name)), words) for words in text.added):
                yield change.name, _said(change)
        if (code := self._code) is None:
            return
        for source in code.sources:
            for place in places(code, source, Sought(added=text.added, removed=text.removed), text.folder):
                yield place.line.file, _of_code(code, source, place.line)

    def _in_skill(self, run_id: str | None, name: str, removed: Sequence[str]) -> bool:
        """Did the words that are gone stand in the recorded texts of a skill?"""
        steps = (step for run in self._runs if run.run_id == run_id for step in run.steps if step.name == f"skill {name}")
        return any(holds(step.typed_result or "", json.dumps(text, ensure_ascii=False)[1:-1]) for step in steps for text in removed)

    def _step(self, difference: Difference) -> Step | None:
        run = next((r for r in self._runs if r.run_id == difference.run_id), None)
        return None if run is None else next((s for s in run.steps if s.seq == difference.step), None)

    # ---- what may have reached it -----------------------------------------------------------------------------------

    def _hits(self, difference: Difference, what: _Hit | None) -> Iterator[_Hit]:
        if self._comparison is None:
            return
        folder = _folder(difference)
        evidence = difference.evidence or {}
        added, removed = list(evidence.get("added", ())), list(evidence.get("removed", ()))
        if difference.kind == "output":  # its first value may be a digest of the others
            texts = evidence.get("skill") or {}
            added += texts.get("added", evidence.get("beside", ()))
            removed += texts.get("removed", ())
        if difference.step is not None and not added and not removed and difference.kind in ("unreached", "order"):
            step = self._step(difference)
            removed = [] if step is None else [step.name]
        elif difference.kind in ("never_recorded", "already_used"):
            added = [*added, difference.name.partition(" ")[2]]
        values = [value for change in self._comparison.changed for value in _values_of(change)]
        looked = Looked(added, removed, values)
        for change in self._comparison.changed:
            if change.kind not in _CODE and (folder is None or change.kind in ("dependency", "file")):  # a skill is files
                strength = self._strength(change, added, removed, looked, evidence)
                words = self._words(change, [*added, *removed]) if strength == _SEEN else frozenset()
                yield _Hit(change.kind, _said(change), strength, file=change.name if change.kind == "file" else None, words=words)
        code = self._code
        if code is not None:
            for source in code.sources:
                file, number = _of_call(code.root, difference.where)
                sought = Sought(added=looked.added, removed=looked.removed, file=file, key=_key(difference, what))
                found = places(code, source, sought, folder)
                for place in found:
                    said, words = _of_code(code, source, place.line), frozenset(place.words)
                    yield _Hit(source, said, _SEEN, file=place.line.file, both=place.both, words=words)
                if not found and folder is None:
                    lines = (line for line in code.lines or () if line.source == source and number is not None)
                    called = next((line for line in lines if (line.file, line.number) == (file, number)), None)
                    yield _Hit(source, _of_code(code, source, called), _POSSIBLE if called is None else _LINE)
        else:  # known by the commits alone
            yield from (_Hit(change.kind, _said(change), _POSSIBLE) for change in self._comparison.changed if change.kind in _CODE)

    def _strength(self, change: Change, added: list[str], removed: list[str], looked: Looked, evidence: Mapping[str, Any]) -> int:
        match change.kind:
            case "variable":
                value = os.environ.get(change.name)
                seen = (value is not None and _reaches(value, added)) or (
                    change.recorded is not None and _reaches(change.recorded, removed)
                )
            case "argv":
                was, now = (change.recorded or "").split(), (change.actual or "").split()
                seen = any(_reaches(a, added) for a in now if a not in was) or any(_reaches(a, removed) for a in was if a not in now)
            case "cwd":
                seen = any(change.actual is not None and change.actual in text for text in added)
            case "dependency":
                seen = bool(added) and looked.in_file(self._text_of(change))
                if not seen and not set(change.modules).isdisjoint(evidence.get("packages", ())):
                    return _CALLED
            case "file":
                seen = bool(added) and looked.in_file(_read(Path(change.name)))
            case "python":
                seen = any(change.actual is not None and change.actual in text for text in added)
            case _:
                seen = False
        return _SEEN if seen else _POSSIBLE

    def _words(self, change: Change, texts: Sequence[str]) -> frozenset[str]:
        """Which of the words that differ a variable, or a dependency, has."""
        match change.kind:
            case "variable":
                values = [value for value in (os.environ.get(change.name), change.recorded) if value]
                return frozenset(text for text in texts if any(_reaches(value, [text]) for value in values))
            case "dependency":
                return frozenset(text for text in texts if holds(self._text_of(change), text))
            case _:
                return frozenset()

    def _text_of(self, change: Change) -> str:
        """The texts of a distribution that has changed."""
        if change.name not in self._texts:
            files, room = 0, _BYTES
            parts: list[str] = []
            for place in change.places:
                for path in [Path(place)] if Path(place).is_file() else sorted(Path(place).rglob("*")):
                    if path.suffix in _READ and files < _FILES and room > 0:
                        parts.append(_read(path, room))
                        files, room = files + 1, room - len(parts[-1])
            self._texts[change.name] = "\n".join(parts)
        return self._texts[change.name]


def _merged(texts: list[_Hit], reached: list[_Hit]) -> list[_Hit]:
    """The texts, each with the place in the code that it stands at, and what else reached a difference."""
    made = []
    for text in texts:
        seen = [hit.text for hit in reached if hit.file in text.carriers]
        own = seen if len(seen) == 1 else list(text.carriers.values())
        made.append(replace(text, text=f"{text.text}: {own[0]}") if len(own) == 1 else text)
    carried = {file for text in texts for file in text.carriers}
    return [*made, *(hit for hit in reached if hit.file not in carried)]


def _sided(reached: list[_Hit]) -> list[_Hit]:
    """Without what has the words of one side only, where another change has those of both."""
    whole = {word for hit in reached if hit.both for word in hit.words}
    return [hit for hit in reached if hit.both is not False or not hit.words <= whole]


def _in_order(reached: list[_Hit], difference: Difference) -> list[_Hit]:
    """As their words come in the difference, where each has its own."""
    if len(reached) < 2 or not _apart(reached):
        return reached
    evidence = difference.evidence or {}
    texts = [*evidence.get("added", ()), *evidence.get("removed", ())]

    def first(hit: _Hit) -> int:
        return min((place for place, text in enumerate(texts) if any(word in text for word in hit.words)), default=len(texts))

    return sorted(reached, key=first)


def _apart(reached: list[_Hit]) -> bool:
    """Has each change other words of the difference?"""
    words = [word for hit in reached for word in hit.words]
    return all(hit.words for hit in reached) and len(words) == len(set(words))


def _folder(difference: Difference) -> Path | None:
    """Of the skill that was loaded otherwise."""
    folder = ((difference.evidence or {}).get("skill") or {}).get("folder")
    return None if folder is None else Path(folder)


def _key(difference: Difference, what: _Hit | None) -> str | None:
    """The name of the field, where its value is a setting or no text: a changed line that names it tells of it."""
    keys = [key for key in (difference.evidence or {}).get("keys", ()) if isinstance(key, str)]
    of_settings = what is not None and what.kind in ("setting", "model")
    values = [value for value in (difference.recorded, difference.actual) if value is not None]
    is_text = any(value.startswith(('"', "{", "[")) for value in values)
    return keys[-1] if keys and (of_settings or not is_text) else None


def _of_tools(changed: list[Mapping[str, Any]], index: str | None, asked: Mapping[str, Any], *, reordered: bool) -> _Hit:
    tools = [c for c in changed if c["kind"] == "tool"]
    parts = []
    for tool in tools[:_NAMED]:
        verb = "is offered now" if tool["recorded"] is None else "is not offered any more" if tool["actual"] is None else "has changed"
        parts.append(f"the tool {tool['name']} {verb}" if verb != "has changed" else f"the schema of tool {tool['name']} has changed")
    if parts:
        return _Hit("tool", f"{' and '.join(parts)} since the run was recorded", _SEEN)
    if reordered:
        return _Hit("tool", "the same tools are offered in another order than when the run was recorded", _SEEN)
    which = "the set of tools, or its order," if index is None else f"the schema of tool {_tool_name(asked, int(index))}"
    return _Hit("tool", f"{which} has changed since the run was recorded", _SEEN)


def _tool_name(asked: Mapping[str, Any], index: int) -> str:
    tools = asked.get("tools")
    if isinstance(tools, list) and index < len(tools) and isinstance(tools[index], dict):
        return str(tools[index].get("name", index))
    return f"number {index + 1}"


def _is_system(field: str, asked: Mapping[str, Any]) -> bool:
    """Is the message that differs one of the system's own?"""
    message = _MESSAGE.match(field)
    messages = asked.get("messages")
    if message is None or not isinstance(messages, list) or int(message[1]) >= len(messages):
        return False
    found = messages[int(message[1])]
    return isinstance(found, dict) and found.get("role") in ("system", "developer")


def _values_of(change: Change) -> Iterator[str]:
    """What of a change stands in a text as it is."""
    match change.kind:
        case "variable":
            yield os.environ.get(change.name) or ""
        case "argv":
            yield from (word for word in (change.actual or "").split() if word not in (change.recorded or "").split())
        case "cwd" | "python":
            yield change.actual or ""
        case _:
            pass


def _reaches(value: str, texts: Sequence[str]) -> bool:
    """Is a value among words that differ?"""
    if len(value) < SHORT - 1:
        return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for text in texts if value and len(text) <= _LINE_LENGTH)
    return any(value in text or (len(text) >= SHORT and text in value) for text in texts)


def _read(path: Path, room: int = _BYTES) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(room)
    except OSError:
        return ""


def _of_call(root: Path, where: str | None) -> tuple[str | None, int | None]:
    """The file of a call below the top folder, and its line."""
    path, _, number = (where or "").rpartition(":")
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix(), int(number)
    except (OSError, ValueError):
        return None, None


def _of_code(code: CodeChanges, source: str, line: ChangedLine | None) -> str:
    place = "" if line is None else f", {line.file}" + (f":{line.number}" if line.number is not None else "")
    if source == "commit":
        was, now = ((commit or "none")[:12] for commit in code.commits)
        return f"the code has changed, commit {was} → {now}{place}"
    return f"the code has changed, not committed{place}"


def _said(change: Change) -> str:
    match change.kind:
        case "variable":
            values = (
                f": {change.recorded or 'not set'} → {change.actual or 'not set'}" if change.recorded or change.actual else change.detail
            )
            return f"the environment variable {change.name} has another value{values}"
        case "dependency":
            return f"the dependency {change.name} has changed: {change.recorded or 'not installed'} → {change.actual or 'not installed'}"
        case "commit":
            return f"the code has changed, commit {change.recorded or 'none'} → {change.actual or 'none'}"
        case "diff":
            return "the code has changed, not committed"
        case _:
            return change.summary()


def _unquoted(text: str | None) -> str | None:
    return None if text is None else text.strip('"')


def _arrow(change: Mapping[str, Any]) -> str:
    if change["recorded"] is None and change["actual"] is None:
        return " since the run was recorded"
    return f": {change['recorded'] or 'none'} → {change['actual'] or 'none'}"


def _name(prompt: Mapping[str, Any]) -> str:
    return f"{prompt['name']} {prompt.get('version') or ''}".rstrip()


def _listed(hits: Sequence[_Hit]) -> str:
    names = [hit.text for hit in hits]
    return "; ".join(names[:_NAMED]) + (f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
