"""Images, sounds and files of a message, as OpenAI's, Anthropic's and LangChain's messages hold them, in the parts of the conventions.

Sources: the content parts of OpenAI's chat completions and Responses APIs, the ``source`` of Anthropic's blocks, and the data blocks of
``langchain_core.messages.content``, the first ones with a ``source_type`` too. What is read here equals what the provider reads of a live
request, so that both are compared.
"""

from collections.abc import Mapping
from typing import Any, Final

from spanreplay.replay.model import Json

KINDS: Final = frozenset({"image_url", "input_image", "input_audio", "input_file", "image", "audio", "video", "file", "document", "uri"})
"""Types of parts that may be media."""
_FAMILIES: Final = ("image", "audio", "video")
_MARK: Final = "lc_"
"""How the ids begin that LangChain makes for its blocks."""
_SCHEME: Final = 32
"""Characters within which an address says that it is one."""
_OF_LANGCHAIN: Final = frozenset({"type", "source_type", "url", "base64", "data", "mime_type", "file_id"})


def media_part(url: Json, modality: str, mime_type: Json = None) -> dict[str, Json] | None:
    """A ``blob`` part of a base64 data URL, a ``uri`` part of any other URL, ``None`` of what is none.

    Args:
        url: as recorded.
        modality: ``image``, ``audio``, ``video`` or ``document``.
        mime_type: where it is told beside the URL.
    """
    if not isinstance(url, str) or not url:
        return None
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        told = head.removeprefix("data:").partition(";")[0]
        return {"type": "blob", "mime_type": told or mime_type, "modality": modality, "content": data}
    return {"type": "uri", "mime_type": mime_type, "modality": modality, "uri": url}


def medium(item: Mapping[str, Json]) -> dict[str, Json] | None:
    """The part of one of :data:`KINDS` that has its data, URL or file where one of these has it; ``None`` of any other.

    Args:
        item: the part as recorded, with its ``type``.
    """
    kind = str(item["type"])
    inner = item.get(kind)
    held: Mapping[str, Json] = inner if isinstance(inner, dict) else {}
    if kind == "uri":  # OpenLLMetry's are data URLs too
        made = media_part(item.get("uri"), str(item.get("modality")), item.get("mime_type"))
        return made if made is not None and made["type"] == "blob" else None
    if kind == "image_url":
        return _with(media_part(held.get("url") or inner, "image"), held, "detail")
    if kind == "input_image":
        made = media_part(item.get("image_url"), "image") or _file(item.get("file_id"), "image")
        return _with(made, item, *sorted(item.keys() - {"type", "image_url"}))
    if kind == "input_audio":
        data = held.get("data")
        return _blob(data, f"audio/{held.get('format') or '*'}", "audio") if isinstance(data, str) else None
    if kind in ("input_file", "file") and (kind == "input_file" or isinstance(inner, dict)):
        held = item if kind == "input_file" else held
        made = _of_data_url(held.get("file_data")) or media_part(held.get("file_url"), "document") or _file(held.get("file_id"), "document")
        return _with(made, held, "filename")
    source = item.get("source")
    if isinstance(source, dict):
        return _with(_of_source(source, kind), item, *sorted(item.keys() - {"type", "source"}))
    return _of_langchain(item, kind)


def _of_source(source: Mapping[str, Json], modality: str) -> dict[str, Json] | None:
    """Anthropic's."""
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        return _blob(data, source.get("media_type"), modality)
    if source.get("type") == "url":
        return media_part(source.get("url"), modality, source.get("media_type"))
    return _file(source.get("file_id"), modality) if source.get("type") == "file" else None


def _of_langchain(item: Mapping[str, Json], kind: str) -> dict[str, Json] | None:
    """A data block: ``url``, ``base64`` or ``file_id``; before 1.0 a ``source_type``, and ``data`` or ``id``."""
    old = item.get("source_type")
    mime_type = item.get("mime_type")
    modality = kind if kind in _FAMILIES else _modality(mime_type)
    data = item.get("data") if old == "base64" else item.get("base64")
    if isinstance(data, str) and data:
        made: dict[str, Json] | None = _blob(data, mime_type, modality)
    elif "modality" in item:  # a part of the conventions already
        return None
    else:
        given = item.get("id") if old == "id" else item.get("file_id")
        made = media_part(item.get("url"), modality, mime_type) or _file(given, modality)
    rest = item.keys() - _OF_LANGCHAIN - {"id"}
    own = item.get("id")
    named = isinstance(own, str) and old != "id" and not own.startswith(_MARK)
    return _with(made, item, *sorted(rest), *(("id",) if named else ()))


def _of_data_url(data: Json) -> dict[str, Json] | None:
    made = media_part(data, "document")
    return None if made is None else {**made, "modality": _modality(made["mime_type"])}


def _blob(data: str, mime_type: Json, modality: str) -> dict[str, Json]:
    if "://" in data[:_SCHEME]:  # MLflow keeps the data elsewhere
        return {"type": "uri", "mime_type": mime_type, "modality": modality, "uri": data}
    return {"type": "blob", "mime_type": mime_type, "modality": modality, "content": data}


def _file(file_id: Json, modality: str) -> dict[str, Json] | None:
    return {"type": "file", "mime_type": None, "modality": modality, "file_id": file_id} if isinstance(file_id, str) and file_id else None


def _with(part: dict[str, Json] | None, item: Mapping[str, Any], *names: str) -> dict[str, Json] | None:
    return None if part is None else {**{name: item[name] for name in names if item.get(name) is not None}, **part}


def _modality(mime_type: Json) -> str:
    family = mime_type.partition("/")[0] if isinstance(mime_type, str) else ""
    return family if family in _FAMILIES else "document"
