"""Secrets leave a text before it is kept: each becomes ``[redacted:KIND:xxxxxxxx]``.

The eight hex digits are the start of HMAC-SHA256 over the secret, keyed with the salt of the policy: within a run the same secret
always gives the same replacement, so redacted texts can still be compared; across runs nothing can be told. JSON stays JSON.
"""

import copy
import json
import threading
from collections.abc import Sequence
from typing import Any

from spanreplay.content._answers import Answers
from spanreplay.content._arguments import secret_places
from spanreplay.content._coded import redact_coded
from spanreplay.content._fields import REPLACED
from spanreplay.content._histories import LONG
from spanreplay.content._learnt import forms_of, may_break_json, places
from spanreplay.content._policy import PolicyError, RedactionPolicy
from spanreplay.content._replacements import Replacements, mask
from spanreplay.content._search import Search
from spanreplay.content._tokens import Span
from spanreplay.content.credentials import MIN_SECRET

__all__ = ["PolicyError", "RedactionPolicy", "Redactor", "mask"]


class Redactor:
    """Takes secrets out of texts as one policy says. Safe to share between threads."""

    def __init__(self, policy: RedactionPolicy) -> None:
        self.policy = policy
        self._search = Search(policy)
        self._replacements = Replacements(policy.salt)
        self._learnt: tuple[str, ...] = ()
        self._answers = Answers()
        self._lock = threading.RLock()  # the collector can end a step, and so redact, while it is held

    @property
    def knowledge(self) -> object:
        """What it has learnt so far. Another object as soon as there is more: what was found clean before may then not be."""
        return self._learnt

    def sharing(self) -> "Redactor":
        """Another redactor of this policy, which knows what this one has learnt; what either learns from now on is its own.

        As long as neither learns anything the two share what became of texts.
        """
        made = copy.copy(self)
        made._lock = threading.RLock()
        with self._lock:
            made._answers, made._learnt = self._answers, self._learnt
        return made

    def learn(self, secret: str) -> None:
        """From now on take out this secret wherever it appears, escaped or percent-encoded too.

        A secret of fewer than 8 characters, quotes around it not counted, is ignored. It is held in memory only.
        """
        secret = secret.strip().strip("\"'").strip()  # quotes around it came along from a settings file
        if len(secret) < MIN_SECRET or not self.policy.enabled:
            return
        with self._lock:
            learnt = tuple(sorted({*self._learnt, *forms_of(secret)}, key=lambda form: (-len(form), form)))
            if learnt != self._learnt:
                # In this order: whoever sees the new secret finds no answer that was given without it.
                self._answers = Answers()
                self._learnt = learnt

    # ---- what may hold a secret -------------------------------------------------------------------------------------

    def text(self, s: str) -> tuple[str, int]:
        """Return the text without its secrets, and how many were taken out."""
        known = self._answers.recent.get(s)
        if known is not None:
            return known
        if not self.policy.enabled or len(s) < MIN_SECRET:
            return s, 0
        learnt = self._learnt
        result = self._answers.older.get(s) or (self._long(s) if len(s) >= LONG else None) or self._redact(s, learnt)
        with self._lock:
            if learnt is self._learnt:
                self._answers.keep(s, result)
        return result

    def name(self, name: str) -> str:
        """Return a name, of an attribute, a step, an agent, without its secrets. Programs use few, again and again."""
        known = self._answers.names.get(name)
        if known is not None:
            return known
        learnt = self._learnt
        clean = self.text(name)[0]
        with self._lock:
            if learnt is self._learnt:
                self._answers.keep_name(name, clean)
        return clean

    def typed(self, s: str) -> tuple[str, int]:
        """Return a text of the typed codec as `text` does, without the secrets in its bytes either, which are base64 there."""
        clean, count = self.text(s)
        if not self.policy.enabled:
            return clean, count
        made, more = redact_coded(clean, self.text, self._without_learnt)
        return made, count + more

    def _without_learnt(self, data: bytes) -> tuple[bytes, int]:
        total = 0
        for form in self._learnt:
            raw = form.encode("utf-8", "surrogatepass")
            count = data.count(raw)
            if count:
                data, total = data.replace(raw, self._replacements.of("secret", form).encode()), total + count
        return data, total

    def url(self, u: str) -> tuple[str, int]:
        """Return the URL without user information and secret parameters; it still parses as a URL.

        The brackets of a replacement in the authority are percent-encoded, for there they would mean an IPv6 address.
        """
        return self.text(u)

    def named(self, name: str, value: str) -> tuple[str, int]:
        """Return the value of a member or attribute of this name: replaced whole where the name says secret, else as `text` does."""
        kind = self.secret_name(name) if self.policy.enabled and value else None
        if kind is not None and not REPLACED.fullmatch(value):
            return self._replacements.of(kind, value), 1
        return self.text(value)

    def finds_in(self, name: str, value: str) -> bool:
        """Tell whether `named` takes anything out of a value. Where it does not, and there is an automaton, that takes half the time."""
        if self.policy.enabled and self.secret_name(name) is None:
            hits, learnt = self._search.hints.at_once(value), self._learnt
            if hits is not None and (not hits or len(value) < LONG) and not (learnt and any(form in value for form in learnt)):
                return len(value) >= MIN_SECRET and bool(self._search.looked_at(value, hits))
        return self.named(name, value)[1] > 0

    def secret_name(self, name: str) -> str | None:
        """Return the kind of secret that values of an attribute or a member of this name are, `header` or `member`; else ``None``.

        ``http.request.header.x-api-key``, as instrumentations of HTTP name what they record, says what the header does.
        """
        return self._search.named(name)

    def data(self, name: str, value: bytes) -> tuple[bytes, int]:
        """Return bytes of an attribute or a member of this name, as `named` does for text; other bytes around a secret stay as they are."""
        try:
            clean, count = self.named(name, value.decode())
            return (clean.encode(), count) if count else (value, 0)
        except UnicodeDecodeError:
            clean, count = self.named(name, value.decode("latin-1"))
            return (clean.encode("latin-1"), count) if count else (value, 0)

    def headers(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], int]:
        """Return the header pairs in their order, secret values replaced whole, and how many secrets were taken out."""
        if not self.policy.enabled:
            return list(pairs), 0
        known = self._answers.headers
        kept: list[tuple[str, str]] = []
        total = 0
        for name, value in pairs:
            answer = known.get((name, value))
            if answer is None:
                answer = self._header(name, value)
            kept.append(answer[0])
            total += answer[1]
        return kept, total

    def _header(self, name: str, value: str) -> tuple[tuple[str, str], int]:
        learnt = self._learnt
        if value and self._search.header(name) and not REPLACED.fullmatch(value):
            text, count = self._replacements.of("header", value), 1
        else:
            text, count = self.text(value)
        answer = (name, text), count
        with self._lock:
            if learnt is self._learnt:
                self._answers.keep_header((name, value), answer)
        return answer

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """Return a command line without the values of options, variables and headers that are credentials by their name.

        They are replaced as learnt secrets are: a command that is run again with the replacement sends what was recorded of it.
        """
        kept = list(argv)
        if self.policy.enabled:
            for index, start, end in reversed(list(secret_places(argv))):
                secret = kept[index][start:end]
                kept[index] = kept[index][:start] + self._replacements.of("secret", secret) + kept[index][end:]
        return [self.text(argument)[0] for argument in kept]

    # ---- taking it out ----------------------------------------------------------------------------------------------

    def _long(self, text: str) -> tuple[str, int] | None:
        with self._lock:
            histories, learnt = self._answers.histories, self._learnt
        if any("}" in form for form in learnt):  # it could go on over a cut
            return None
        return histories.redact(text, lambda segment, size: self._segment(segment, size, learnt))

    def _segment(self, text: str, size: int, learnt: tuple[str, ...]) -> tuple[str, int] | None:
        spans, found = self._found(text, learnt, size=size)
        if found or any(span.end > size for span in spans):
            return None
        return self._replacements.put(text[:size], spans) if spans else (text[:size], 0)

    def _found(self, text: str, learnt: tuple[str, ...], *, size: int | None = None) -> tuple[list[Span], list[str]]:
        return self._search.spans(text, size=size), [form for form in learnt if form in text] if learnt else []

    def _redact(self, text: str, learnt: tuple[str, ...]) -> tuple[str, int]:
        spans, found = self._found(text, learnt)
        if not found:
            return self._replacements.put(text, spans) if spans else (text, 0)
        result = self._replacements.put(text, [*spans, *places(text, found)])
        return self._by_tree(text, learnt, result) if may_break_json(text, found) else result

    def _by_tree(self, text: str, learnt: tuple[str, ...], result: tuple[str, int]) -> tuple[str, int]:
        """Redact a JSON text value by value, where a learnt secret may be a number, or touch quotes and escapes."""
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            return result
        total = 0

        def walk(item: Any, name: str | None = None) -> Any:
            nonlocal total
            if isinstance(item, dict):
                return {walk(key): walk(value, key) for key, value in item.items()}
            if isinstance(item, list):
                return [walk(value) for value in item]
            if isinstance(item, str):
                kind = None if name is None else self._search.member(name)
                if kind is not None and item and not REPLACED.fullmatch(item):
                    total += 1
                    return self._replacements.of(kind, item)
                redacted, count = self._redact(item, learnt)
                total += count
                return redacted
            if type(item) in {int, float} and any(form in json.dumps(item) for form in learnt):
                total += 1
                return self._replacements.of("secret", json.dumps(item))
            return item

        try:
            separators = (", ", ": ") if '": ' in text else (",", ":")
            return json.dumps(walk(tree), ensure_ascii=text.isascii(), separators=separators), total
        except (ValueError, RecursionError):
            return result
