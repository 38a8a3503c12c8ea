"""The lines of a process's journal: each record with the content that it refers to, in one write where that can be.

Where one of the parts cannot be made or written, they are written one by one: what can be kept is, and what cannot is counted.
"""

from collections.abc import Callable, Mapping, Sequence

from spanreplay.spans.record import EventRecord, LinkRecord, Value
from spanreplay.store.attribute_text import AttributeText
from spanreplay.store.brought import joined
from spanreplay.store.encoding import ContentLostError, encode_map, to_json
from spanreplay.store.flushing import Flusher
from spanreplay.store.form import ATTRIBUTES, EVENTS, LINKS, Form, event_form, link_form
from spanreplay.store.journal_content import JournalContent
from spanreplay.store.journal_file import JournalFile
from spanreplay.store.journal_reader import LOST
from spanreplay.store.pieces import Splitter


class JournalLines:
    """What is written into the files of one process, one file after the other. Not for two threads at once.

    Args:
        file: takes the lines.
        flusher: writes later what the file gathers; ``None`` where it gathers nothing.
    """

    content: JournalContent
    """What the file has of content, resources and scopes."""
    attribute_text: AttributeText
    """Makes the JSON of attributes, whose long content goes into the file."""

    def __init__(self, file: JournalFile, flusher: Flusher | None) -> None:
        self._file = file
        self._flusher = flusher
        self._splitter = Splitter()
        self.forget()

    def forget(self) -> None:
        """A new file has to hold by itself all that its records refer to."""
        self.content = JournalContent(self._file, self._splitter)
        self.keep = self.content.keep
        self.attribute_text = AttributeText(self.keep, self.content.refer)

    def look(self, *, at_once: bool = False) -> None:
        """To be called before anything is written: another file is begun where the present one is gone or full.

        Args:
            at_once: ask the file system now whether it is gone; else it is asked once a second.
        """
        self.content.release()  # the garbage collector may have ended a span while another one is written
        file = self._file
        if at_once or file.needs_a_look:
            if file.is_gone(at_once=at_once):
                self.forget()
            elif file.is_full:
                file.end()
                self.forget()
        if self._flusher is not None:
            if file.lost_gathered:
                file.lost_gathered = False
                self.forget()
            if not self._flusher.wake():
                file.gather_no_more()

    def end(self) -> None:
        """Ends the file. A later line begins another one."""
        self._file.end()
        self.forget()

    def put_joined(self, line: Callable[[], str | None]) -> bool:
        """Writes a record and the content that it refers to at once.

        Args:
            line: makes the record's, and keeps the content; ``None`` where the record has more than a line of its kind can say.

        Returns:
            ``False`` where the record was not written: it is to be tried in parts, of which one may get there.
        """
        content = self.content
        held, brought = content.hold()
        try:
            made = line()
            if made is not None:
                lines = [*held]
                held.clear()
                try:
                    record = made.encode()
                    self._file.write_together([*lines, joined(brought, record) if brought else record])
                except BaseException:
                    self.forget()
                    raise
        except Exception:  # noqa: BLE001 - whoever tries it in parts finds out which of them it is
            made = None
        finally:
            try:
                content.release()
            except ContentLostError:
                self.forget()
        return made is not None

    def put_additions(
        self, form: Form, attributes: Mapping[str, Value], events: Sequence[EventRecord], links: Sequence[LinkRecord]
    ) -> None:
        """Writes what is new of a span written before: a form that says of which, and these."""
        text = self.attributes(attributes, form)
        if events:
            form[EVENTS] = [event_form(event, self.keep) for event in events]
        if links:
            form[LINKS] = [link_form(link, self.keep) for link in links]
        self.put(form, text)

    def put(self, form: Form, attributes: str) -> bool:
        """Writes a record whose attributes are text already; ``False``, and a count, where it did not get there."""
        line = to_json(form)
        return self._file.put(f'{line[:-1]},"{ATTRIBUTES}":{attributes}}}' if attributes else line)

    def attributes(self, attributes: Mapping[str, Value], form: Form) -> str:
        """JSON of all attributes that can be kept; the span is worth more than the one that cannot, which is counted in its form."""
        if not attributes:
            return ""
        try:
            return self.attribute_text.text(attributes)
        except Exception:  # noqa: BLE001 - found out below which attribute it is
            kept: dict[str, Value] = {}
        for key, value in attributes.items():
            try:
                encode_map({key: value}, self.keep)
            except Exception as error:  # noqa: BLE001 - any value may come from anywhere
                form[LOST] = form.get(LOST, 0) + 1
                self._file.drop(error)
            else:
                kept[key] = value
        return to_json(encode_map(kept, self.keep)) if kept else ""
