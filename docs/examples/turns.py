"""What the model without a mind says: a request of any API is read, and answered with the next tool to call or with a text."""

import ast
import functools
import json
import re
from dataclasses import dataclass, field
from typing import Any

ENDS = re.compile(r"transfer_|handoff|final_|finish")
"""Tools that end an agent's turn: asked for after all others."""
CHANGES = re.compile(r"write")
"""Tools that are asked for after those that look something up."""
NEVER = re.compile(r"delete|remove|execute|shell|bash|(?:^|_)edit(?:_|$)", re.IGNORECASE)
"""Tools that are not asked for: what has no mind destroys nothing, and runs no commands."""
LONG = ("input", "task", "request", "question", "query", "message", "prompt", "reason", "description")
"""Arguments that are the whole question. Others are a name in it, where there is one."""
NUMBERS = {word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}
TOLD = re.compile(r"called tool `(\w+)`|[\"']name[\"']: [\"'](\w+)[\"']|^\w+ = (\w+)\(|\[\[ ## tool_name_\d+ ## \]\]\s*(\w+)", re.MULTILINE)
"""Calls that a framework tells of in a text."""
GIVEN = re.compile(
    r"Observation:\s*(?:Execution logs:\s*)?(?:Here is [^\n]*\n)?(.+)|\[\[ ## (?:observation_\d+|findings) ## \]\]\s*([^`\n].*)"
    r"|context you're working with:\s*(.+)"
)
"""Results in a text."""
SCHEMA = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema")
"""Where the APIs have the schema of a tool."""
OPTION = re.compile(r"^\s*- \"?([\w-]+)\"?:|id=\"([\w-]+)\"|['\"]([\w-]+)['\"]: ['\"]|[Aa]gent name: (\w+)", re.MULTILINE)
"""What may be chosen, where a schema has no ``enum`` but a text has a list."""


@dataclass
class Call:
    name: str
    arguments: dict[str, Any]


@dataclass
class Asked:
    """What a request says, in whichever API."""

    system: str = ""
    said: list[str] = field(default_factory=list)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)  # by name: description, parameters (a JSON schema)
    called: dict[str, str] = field(default_factory=dict)  # id of the call: name of the tool
    results: list[str] = field(default_factory=list)
    schema: dict[str, Any] | None = None  # that the answer has to fit


def text_of(value: Any) -> str:
    """All text in a message, a part or a result."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    if isinstance(value, dict):
        found = next((value[key] for key in ("text", "content", "parts", "output", "result") if value.get(key)), None)
        return text_of(found) if found is not None else json.dumps(value, ensure_ascii=False) if "type" not in value else ""
    return "" if value is None else str(value)


def read(body: dict[str, Any]) -> Asked:
    """A request of any of the APIs; raises what Python raises where it is none."""
    asked = Asked(text_of(body.get("system") or body.get("instructions") or body.get("systemInstruction")))
    messages = body.get("messages") or body.get("contents") or body.get("input") or []
    for message in [{"role": "user", "content": messages}] if isinstance(messages, str) else messages:
        content = message.get("content") or message.get("parts") or []
        for part in [message, *(message.get("tool_calls") or []), *(content if isinstance(content, list) else [])]:
            kind, call = part.get("type"), part.get("function") or part.get("functionCall") or part
            if kind in ("function", "function_call", "tool_use") or "functionCall" in part:
                asked.called[part.get("call_id") or part.get("id") or call["name"]] = call["name"]
            if part.get("role") == "tool" or kind in ("function_call_output", "tool_result") or "functionResponse" in part:
                answer = part.get("functionResponse") or part
                of = answer.get("tool_call_id") or answer.get("call_id") or answer.get("tool_use_id") or answer.get("name")
                if not ENDS.match(asked.called.get(of, "")):
                    asked.results.append(text_of(answer.get("response") or answer))
        if message.get("role") in ("system", "developer"):
            asked.system += "\n" + text_of(content)
        elif message.get("role") != "tool" and content:
            told = text_of([part for part in content if part.get("type") != "tool_result"] if isinstance(content, list) else content)
            asked.called.update((name, name) for found in TOLD.findall(told) for name in found if name)
            asked.results += [result for found in GIVEN.findall(told) for result in found if result]
            asked.said += [told] if message.get("role") == "user" and told else []
    offered = [] if body.get("tool_choice") in ("none", {"type": "none"}) else body.get("tools") or []
    for tool in [one for tool in offered for one in tool.get("functionDeclarations") or [tool.get("function", tool)] if "name" in one]:
        parameters: dict[str, Any] = next((tool[key] for key in SCHEMA if tool.get(key)), {})
        asked.tools[tool["name"]] = {"description": tool.get("description") or "", "parameters": parameters}
    if "Bash" in asked.tools:  # a coding agent, whose own tools act on this machine: only those that it was given
        asked.tools = {name: tool for name, tool in asked.tools.items() if name.startswith("mcp__")}
    answer = (body.get("response_format") or {}).get("json_schema") or (body.get("text") or {}).get("format")
    answer = answer or (body.get("output_config") or {}).get("format") or body.get("generationConfig") or {}
    asked.schema = answer.get("schema") or answer.get("responseSchema") or answer.get("responseJsonSchema")
    return asked


def turn(asked: Asked) -> Call | str:
    """The next tool that was not asked for yet, else an answer."""
    left = [name for name in asked.tools if name not in asked.called.values() and not NEVER.search(name)]
    for name in sorted(left, key=lambda name: (bool(ENDS.match(name)), bool(CHANGES.match(name))))[:1]:
        parameters, about = asked.tools[name]["parameters"], asked.tools[name]["description"]
        return Call(name, fill({"type": "object", **parameters}, asked, about=about))
    return summary(asked) if asked.schema is None else json.dumps(fill(asked.schema, asked))


def summary(asked: Asked) -> str:
    """What the last tools gave, but for those that say only that they did, or found, nothing."""
    told = [result.strip().removeprefix("I found: ")[:200] for result in asked.results]
    found = "; ".join(dict.fromkeys([one for one in told if not re.match(r"No |Error|Completed|Updated|\{\}|$", one)][-3:]))
    return f"I found: {found}" if found else f"You said: {question(asked)}"


def question(asked: Asked) -> str:
    """The line of the first message that asks, else its first line; frameworks put others around it."""
    lines = [line.strip() for line in (asked.said or [""])[0].splitlines() if line.strip()] or ["Hello."]
    return re.sub(r"^(Current |New )?[Tt]ask:\s*", "", next((line for line in lines if line.endswith("?")), lines[0])[:200])


def fill(schema: dict[str, Any], asked: Asked, *, name: str = "", about: str = "", root: Any = None, depth: int = 0) -> Any:
    """A value that fits a JSON schema, of what was said and found where that has something."""
    root = root or schema
    while choice := next((schema[key] for key in ("$ref", "anyOf", "oneOf", "allOf") if key in schema and depth < 9), None):
        depth += 1
        if isinstance(choice, str):
            schema = functools.reduce(lambda at, key: at[key], choice.split("/")[1:], root)
        else:
            schema = next((one for one in choice if one.get("type") != "null"), {})
    inside = functools.partial(fill, asked=asked, about=f"{about}\n{schema.get('description', '')}", root=root, depth=depth + 1)
    kinds = schema.get("type") or ("object" if "properties" in schema else "string")
    kind = (kinds if isinstance(kinds, str) else kinds[0]).lower()
    if "const" in schema or "default" in schema:
        return schema.get("const", schema.get("default"))
    if choices := schema.get("enum") or schema.get("examples"):
        return next((choice for choice in choices if str(choice) in question(asked)), choices[0])
    if depth > 8:
        return None
    if kind == "object":
        inner = schema.get("properties") or {}
        return {key: inside(inner[key], name=key) for key in schema.get("required", inner) if key in inner}
    if kind == "array":
        return [inside(schema.get("items") or {}, name=name)]
    if kind in ("integer", "number"):
        return number(name, asked)
    return False if kind == "boolean" else words(name, about, asked)


def number(name: str, asked: Asked) -> int:
    """The number beside the word, in what was found or said: ``order 1042``, ``two nights``."""
    for text in [*reversed(asked.results), question(asked)]:
        for found in re.findall(rf"\b{name}\W{{1,4}}(\d+)|(\w+) {name}\b", text, re.IGNORECASE):
            for word in found:
                if word.isdigit() or word.lower() in NUMBERS:
                    return int(NUMBERS.get(word.lower(), word))
    numbers = re.findall(r"\d+", " ".join(asked.results))
    return int(numbers[0]) if numbers else 1


def words(name: str, about: str, asked: Asked) -> str:
    """A text for an argument, by the argument's name."""
    if re.search(r"path|file", name):
        return next(iter(re.findall(r"/[\w./-]+\.\w+", f"{asked.system} {question(asked)}")), "/notes.md")
    if re.search(r"(_id|_type|agent|agent_name)$", name):
        options = [option for text in (asked.system, about) for found in OPTION.findall(text) for option in found if option]
        return options[-1] if options else "1"
    if name in ("answer", "content", "text") and asked.results:
        return summary(asked)
    names = re.findall(r"(?<=[a-z,] )[A-Z]\w+", question(asked)) or re.findall(r"\ban? (\w+)", question(asked))
    return question(asked) if name in LONG or not names else names[0]


def in_text(asked: Asked) -> str | None:
    """The turn as a text with a call in it, for agents that want that."""
    for name, about, arguments in re.findall(r"\(\d+\) (\w+), whose description is <desc>(.*?)</desc>.*?arguments (\{.*\})", asked.system):
        asked.tools[name] = {"description": about, "parameters": {"type": "object", "properties": ast.literal_eval(arguments)}}
    if wanted := re.findall(r"\[\[ ## (\w+) ## \]\]", asked.said[-1].rpartition("Respond with")[2]) if asked.said else []:
        said = turn(asked)
        call = said if isinstance(said, Call) else Call("finish", {})
        values = {"next_tool_name": call.name, "next_tool_args": json.dumps(call.arguments), "completed": ""}
        return "\n\n".join(f"[[ ## {name} ## ]]\n{values.get(name, summary(asked))}" for name in wanted)
    if "</code>" not in asked.system or asked.tools:
        return None
    for name, listed in re.findall(r"^ *def (\w+)\((.*?)\) ->", asked.system, re.MULTILINE):
        of = {key: {"type": {"int": "integer", "float": "number"}.get(kind, kind)} for key, kind in re.findall(r"(\w+): (\w+)", listed)}
        asked.tools[name] = {
            "description": "",
            "parameters": {"properties": of, "required": [key for key in of if key != "additional_args"]},
        }
    said = turn(asked)
    if isinstance(said, str):
        said = Call("final_answer", {"answer": said})
    arguments = ", ".join(f"{key}={value!r}" for key, value in said.arguments.items())
    code = f"{said.name}({arguments})" if ENDS.match(said.name) else f"found = {said.name}({arguments})\nprint(found)"
    return f"Thought: {said.name} is next.\n<code>\n{code}\n</code>"
