"""What the records of one journal refer to: content, resources and scopes, each written before it is first named, and only then."""

from base64 import b64encode
from hashlib import sha256
from typing import Final

from spanreplay.content.digests import known_digest, remember_digest
from spanreplay.content.json_text import quoted
from spanreplay.spans.record import Resource, Scope
from spanreplay.store.brought import reference
from spanreplay.store.encoding import ContentLostError, digest_of, text_bytes, to_json
from spanreplay.store.form import Form, resource_form, resource_text, scope_form
from spanreplay.store.journal_file import JournalFile
from spanreplay.store.journal_reader import TYPE, text_line
from spanreplay.store.latest import Latest
from spanreplay.store.pieces import SHORTEST, Piece, Splitter
from spanreplay.store.record_text import plain_origin

_SEEN_DIGESTS: Final = 32_768
_MEMO_OBJECTS: Final = 256
_ENDS: Final = 64
"""Characters at both ends of a text that tell it from others. Where it is another one nevertheless, it is digested."""
_WHOLE: Final = 16_384
"""Characters up to which a text is written whole: reading it to find what it has in common with others takes longer than writing it, and
is left to who loads the journal. A longer one is a conversation that has gone on for a while, which would be written again with each
request."""


class JournalContent:
    """What one journal file has of these. Not for two threads at once.

    Args:
        file: takes the lines.
        splitter: what it knows of earlier texts may be of an earlier file.
    """

    def __init__(self, file: JournalFile, splitter: Splitter) -> None:
        self._file = file
        self._splitter = splitter
        self._digests = Latest(_SEEN_DIGESTS)
        self._held: list[bytes] | None = None
        self._brought: list[bytes] = []
        self._seen = Latest(_SEEN_DIGESTS)
        """What tells of texts whose digests are not known that they may have been met before."""
        self._resources: dict[int, tuple[Resource, str | None]] = {}
        self._scopes: dict[int, tuple[Scope, tuple[Form, str]]] = {}
        self._origins: dict[tuple[int, int], tuple[Resource, Scope, str]] = {}

    def __len__(self) -> int:
        return len(self._digests)

    def keep(self, content: str | bytes) -> str:
        """Writes content where it is not in the file yet, and gives its digest.

        Raises:
            ContentLostError: it could not be written.
        """
        if isinstance(content, bytes):
            digest = digest_of(content)
            if digest not in self._digests:
                self._put(digest, _blob(digest, "data", to_json(b64encode(content).decode("ascii"))))
            return digest
        found = known_digest(content)
        if found is None:
            return self._keep_new(content)
        digest = "sha256:" + found.hex
        if digest not in self._digests:
            self._put_text(digest, content, found.size)
        return digest

    def _keep_new(self, content: str) -> str:
        """Keeps a text whose digest is not remembered. It will be when the text comes again, which most do not."""
        data = content.encode("utf-8", "surrogatepass")
        found = sha256(data).hexdigest()
        digest = "sha256:" + found
        if digest in self._digests:
            remember_digest(content, found, len(data))
        elif SHORTEST <= len(data) <= _WHOLE and len(data) == len(content) and "\n" not in content:  # all ASCII: as it is
            self._put(digest, text_line(digest, data))
        else:
            self._put_text(digest, content, len(data))
        return digest

    def hold(self) -> tuple[list[bytes], list[bytes]]:
        """From now on lines are not written but added to a list, for whoever writes them before the record that refers to them.

        Returns:
            That list, and what the record is to bring itself, as :meth:`refer` says.
        """
        self._held, self._brought = [], []
        return self._held, self._brought

    def refer(self, content: str) -> str:
        """Gives the JSON of a reference to a text of the record that is being made, which brings it where it may be the first to have it.

        Raises:
            ContentLostError: it could not be written.
        """
        known = known_digest(content)  # of what the span has of it, too
        if known is not None and "sha256:" + known.hex in self._digests:
            return f'{{"$blob":"sha256:{known.hex}"}}'
        if self._held is not None and len(content) <= _WHOLE and "\n" not in content:
            seen = hash((len(content), content[:_ENDS], content[-_ENDS:]))
            if seen not in self._seen:
                try:
                    self._brought.append(content.encode())
                except UnicodeEncodeError:
                    pass
                else:
                    self._seen.add(seen)
                    return reference(len(self._brought) - 1)
        return f'{{"$blob":"{self.keep(content)}"}}'

    def release(self) -> None:
        """From now on each line is written at once, as those are that were held and not taken from the list.

        Raises:
            ContentLostError: one could not be written; what is thought to be in the file may not be.
        """
        if self._held is None:
            return
        held, self._held = self._held, None
        if held:
            lines = [*held]
            held.clear()
            for line in lines:
                self._write(line)

    def resource(self, resource: Resource) -> str | None:
        """The digest of a resource; ``None`` for the empty one."""
        known = self._resources.get(id(resource))
        if known is not None and known[0] is resource:
            return known[1]
        form = resource_form(resource, self.keep)
        digest = None
        if form:
            text = resource_text(form)
            digest = digest_of(text.encode("ascii"))
            if digest not in self._digests:
                self._put(digest, to_json({TYPE: "resource", "d": digest, "json": text}).encode("ascii"))
        if len(self._resources) >= _MEMO_OBJECTS:
            self._resources.clear()
        self._resources[id(resource)] = (resource, digest)
        return digest

    def scope(self, scope: Scope) -> tuple[Form, str]:
        """The form of a scope, and its JSON, ``""`` for the empty one."""
        known = self._scopes.get(id(scope))
        if known is not None and known[0] is scope:
            return known[1]
        form = scope_form(scope, self.keep)
        made = (form, to_json(form) if form else "")
        if len(self._scopes) >= _MEMO_OBJECTS:
            self._scopes.clear()
        self._scopes[id(scope)] = (scope, made)
        return made

    def origin(self, resource: Resource, scope: Scope) -> str:
        """Both, as the lines of plain spans have them."""
        known = self._origins.get((id(resource), id(scope)))
        if known is not None and known[0] is resource and known[1] is scope:
            return known[2]
        made = plain_origin(self.resource(resource), self.scope(scope)[1])
        if len(self._origins) >= _MEMO_OBJECTS:
            self._origins.clear()
        self._origins[id(resource), id(scope)] = (resource, scope, made)
        return made

    def _put_text(self, digest: str, content: str, size: int) -> None:
        if len(content) > _WHOLE:
            if not content.isascii() and not text_bytes(content)[1]:
                self._put(digest, _blob(digest, "data", to_json(b64encode(text_bytes(content)[0]).decode("ascii"))))
                return
            piece = self._splitter.split(content, digest, size)
            if piece is not None:
                self._put_piece(piece)
                return
        self._put_whole(digest, content)

    def _put_whole(self, digest: str, content: str) -> None:
        is_ascii = content.isascii()
        if not is_ascii:
            data, clean = text_bytes(content)
            if not clean:
                self._put(digest, _blob(digest, "data", to_json(b64encode(data).decode("ascii"))))
                return
        if len(content) >= SHORTEST and "\n" not in content:
            self._put(digest, text_line(digest, content.encode()))
        else:
            self._put(digest, _blob(digest, "text", quoted(content) if is_ascii else to_json(content)))

    def _put_piece(self, piece: Piece) -> None:
        if piece.digest not in self._digests:  # else all its pieces are in this file, too
            for inner in piece.inner:
                self._put_piece(inner)
            if piece.parts is None:
                self._put_whole(piece.digest, piece.text or "")
            else:
                self._put(piece.digest, to_json({TYPE: "pieces", "d": piece.digest, "n": piece.size, "parts": piece.parts}).encode("ascii"))

    def _put(self, digest: str, line: bytes) -> None:
        if self._held is None:
            self._write(line)
        else:
            self._held.append(line)
        self._digests.add(digest)

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
        except OSError as error:
            raise ContentLostError(error.errno, error.strerror) from error


def _blob(digest: str, key: str, value: str) -> bytes:
    return f'{{"{TYPE}":"blob","d":"{digest}","{key}":{value}}}'.encode()
