"""What the codecs of all APIs have in common, beside the functions that they share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from spanreplay.instrumentation._lenient import integer, mapping, text
from spanreplay.instrumentation.provider import ProviderKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a response is made of, see :meth:`spanreplay.instrumentation.provider.Provider.render`."""

    messages: Sequence[Mapping[str, object]]
    asked: Mapping[str, object]
    """The request; empty where it is no object."""
    response_id: str | None
    model: str
    """That answered, or that was asked for; may be empty."""
    usage: Mapping[str, int]

    def choices(self, wanted: object) -> list[Sequence[Mapping[str, object]]]:
        """The messages of each choice: all messages make one, unless several are wanted."""
        return [[message] for message in self.messages] if (integer(wanted) or 1) > 1 else [self.messages]


class Codec(ABC):
    """A provider of which only what differs is left to write."""

    KIND: ClassVar[ProviderKind] = "model_call"
    LOCAL_IDS: ClassVar[tuple[str, ...]] = ()
    LOCAL_TIMES: ClassVar[tuple[str, ...]] = ()

    def asked(self, path: str, body: object) -> object:
        """The body says it all."""
        del path
        return body

    def render(
        self,
        output_messages: Sequence[Mapping[str, object]],
        *,
        request: object,
        response_id: str | None,
        model: str | None,
        usage: Mapping[str, int],
    ) -> tuple[str, bytes]:
        """See :meth:`spanreplay.instrumentation.provider.Provider.render`."""
        asked = mapping(request)
        named = model or text(asked.get("model")) or ""
        return self.write(Said(messages=output_messages, asked=asked, response_id=response_id, model=named, usage=usage))

    @abstractmethod
    def write(self, said: Said) -> tuple[str, bytes]:
        """Content type and body of a response."""
