"""Secrets leave a text before it is kept: each becomes ``[redacted:KIND:xxxxxxxx]``.

The eight hex digits are the start of HMAC-SHA256 over the secret, keyed with the salt of the policy: within a run the same secret
always gives the same replacement, so redacted texts can still be compared; across runs nothing can be told. JSON stays JSON.
"""

import copy
import hashlib
import hmac
import json
import re
import secrets
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar
from urllib.parse import quote, quote_plus

from spanreplay.content._arguments import secret_places
from spanreplay.content._coded import redact_coded
from spanreplay.content._fields import REPLACED, NamedFinder
from spanreplay.content._hints import Hint, Hints
from spanreplay.content._histories import LONG, Histories
from spanreplay.content._names import WORDS, header_says_secret
from spanreplay.content._tokens import TOKENS, Span, TokenFinder
from spanreplay.content.credentials import MIN_SECRET

T = TypeVar("T")

HEADERS: Final = (
    *("authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie"),
    *("x-auth-token", "x-amz-security-token", "x-access-token", "x-csrf-token", "x-xsrf-token", "x-vault-token", "private-token"),
    *("x-auth", "x-session-id", "ocp-apim-subscription-key"),
)
MEMBERS: Final = (
    *("password", "passwd", "passphrase", "secret", "client_secret", "clientsecret", "api_key", "apikey", "access_token", "accesstoken"),
    *("refresh_token", "refreshtoken", "id_token", "idtoken", "auth_token", "authtoken", "bearer_token", "session_token", "sessiontoken"),
    *("private_key", "privatekey", "secret_key", "secretkey", "secret_access_key", "secretaccesskey", "aws_secret_access_key"),
    *("aws_session_token", "authorization"),
)
QUERY: Final = (
    *("key", "api_key", "apikey", "api-key", "token", "access_token", "refresh_token", "id_token", "auth_token", "sig", "signature"),
    *("password", "passwd", "secret", "client_secret", "client_assertion", "awsaccesskeyid", "x-amz-signature", "x-amz-credential"),
    *("x-amz-security-token", "x-goog-signature", "x-goog-credential", "subscription-key"),
)

_CACHE_SECRETS: Final = 256
_CACHE_SECRET: Final = 1024
_CACHE_ENTRIES: Final = 256
_CACHE_CHARACTERS: Final = 4_000_000
_CACHE_TEXT: Final = 65_536
_CACHE_NAMES: Final = 4096
_CACHE_NAME: Final = 256
_SCHEME: Final = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)
_NUMBER_LIKE: Final = re.compile(r"[0-9.eE+-]+|-?Infinity")


class PolicyError(ValueError):
    """A text is no redaction policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionPolicy:
    """What is taken out. It holds names and a salt, never a secret, so it is kept with the run.

    Attributes:
        salt: Key of the replacement digests, hex.
        headers: Names of HTTP headers whose values are secrets. Letter case never counts in these names.
        header_words: Words, and pairs of words joined by a hyphen, that make the name of a header the name of a secret.
        members: Names of JSON members and keyword arguments whose string values are secrets; only the exact name counts.
        query: Names of URL parameters whose values are secrets.
        patterns: Kinds of secret known by their form, out of `TOKENS`.
        enabled: False: nothing at all is taken out.
    """

    salt: str
    headers: tuple[str, ...] = HEADERS
    header_words: tuple[str, ...] = WORDS
    members: tuple[str, ...] = MEMBERS
    query: tuple[str, ...] = QUERY
    patterns: tuple[str, ...] = tuple(dict.fromkeys(token.kind for token in TOKENS))
    enabled: bool = True

    @classmethod
    def default(cls) -> "RedactionPolicy":
        """Return the policy of a new run: everything known, a random salt."""
        return cls(salt=secrets.token_hex(16))

    @classmethod
    def none(cls) -> "RedactionPolicy":
        """Return the policy that takes nothing out."""
        return cls(salt="", headers=(), header_words=(), members=(), query=(), patterns=(), enabled=False)

    def to_json(self) -> str:
        """Return the policy as JSON."""
        return _as_json(self)

    @classmethod
    @lru_cache(maxsize=64)
    def from_json(cls, text: str) -> "RedactionPolicy":
        """Return the policy of a text made by `to_json`.

        Raises:
            PolicyError: It is not one, or of a version that this program does not know.
        """
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise PolicyError(f"expected a redaction policy as JSON, found {text[:80]!r} ({problem})") from problem
        if not isinstance(tree, dict) or tree.get("version") != 1:
            raise PolicyError(f'expected a redaction policy with "version": 1, found {text[:80]!r}')
        salt, enabled = tree.get("salt"), tree.get("enabled")
        lists = {name: tree.get(name) for name in ("headers", "members", "query", "patterns")}
        lists["header_words"] = tree.get("header_words", [])  # policies of older recordings have none
        if not isinstance(salt, str) or not isinstance(enabled, bool):
            raise PolicyError(f"expected a string `salt` and a bool `enabled` in a redaction policy, found {text[:80]!r}")
        names: dict[str, tuple[str, ...]] = {}
        for name, items in lists.items():
            if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
                raise PolicyError(f"expected a list of strings as `{name}` of a redaction policy, found {items!r}")
            names[name] = tuple(items)
        return cls(salt=salt, enabled=enabled, **names)


@lru_cache(maxsize=64)
def _as_json(policy: RedactionPolicy) -> str:
    return json.dumps({"version": 1, **asdict(policy)}, separators=(",", ":"))


_finder_of: Final = lru_cache(maxsize=64)(NamedFinder)
_hints_of: Final = lru_cache(maxsize=64)(Hints)
"""Both are compiled expressions and nothing else."""


def _remember(known: dict[str, T], name: str, found: T) -> T:
    """Keep what was found of a name: programs use few, again and again."""
    if len(known) < _CACHE_NAMES and len(name) <= _CACHE_NAME:
        known[name] = found
    return found


class _Answers:
    """What became of texts, as long as no further secret is learnt.

    Two generations: a text that is asked for again moves to the recent ones; when these are many, the older are dropped.
    """

    __slots__ = ("characters", "headers", "histories", "older", "recent")

    def __init__(self) -> None:
        self.recent: dict[str, tuple[str, int]] = {}
        self.older: dict[str, tuple[str, int]] = {}
        self.characters = 0
        self.headers: dict[tuple[str, str], tuple[tuple[str, str], int]] = {}
        self.histories = Histories()

    def keep_header(self, pair: tuple[str, str], answer: tuple[tuple[str, str], int]) -> None:
        if len(self.headers) >= _CACHE_NAMES:
            self.headers = {}
        self.headers[pair] = answer

    def keep(self, text: str, result: tuple[str, int]) -> None:
        if len(self.recent) >= _CACHE_ENTRIES or self.characters >= _CACHE_CHARACTERS:
            self.recent, self.older, self.characters = {}, self.recent, 0
        self.recent[text] = result
        self.characters += len(text)


class Redactor:
    """Takes secrets out of texts as one policy says. Safe to share between threads."""

    def __init__(self, policy: RedactionPolicy) -> None:
        self.policy = policy
        self._key = policy.salt.encode()
        self._finder = _finder_of(policy.headers, policy.members, policy.query, policy.header_words)
        self._headers = frozenset(name.lower() for name in policy.headers)
        self._members = self._headers | {name.lower() for name in policy.members}
        self._tokens = TokenFinder(policy.patterns)
        self._hints = _hints_of(self._tokens.hints + self._finder.hints)
        self._learnt: tuple[str, ...] = ()
        self._answers = _Answers()
        self._kinds: dict[str, str | None] = {}
        self._secret_headers: dict[str, bool] = {}
        self._replacements: dict[tuple[str, str], str] = {}
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
            learnt = tuple(sorted({*self._learnt, *_forms(secret)}, key=lambda form: (-len(form), form)))
            if learnt != self._learnt:
                # In this order: whoever sees the new secret finds no answer that was given without it.
                self._answers = _Answers()
                self._learnt = learnt

    def text(self, s: str) -> tuple[str, int]:
        """Return the text without its secrets, and how many were taken out."""
        known = self._answers.recent.get(s)
        if known is not None:
            return known
        if not self.policy.enabled or len(s) < MIN_SECRET:
            return s, 0
        learnt = self._learnt
        result = self._answers.older.get(s) or (self._long(s) if len(s) >= LONG else None) or self._redact(s, learnt)
        if len(s) <= _CACHE_TEXT:
            with self._lock:
                if learnt is self._learnt:
                    self._answers.keep(s, result)
        return result

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
                data, total = data.replace(raw, self._replacement("secret", form).encode()), total + count
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
            return self._replacement(kind, value), 1
        return self.text(value)

    def finds_in(self, name: str, value: str) -> bool:
        """Tell whether `named` takes anything out of a value. Where it does not, and there is an automaton, that takes half the time."""
        if len(value) < LONG and self.policy.enabled and self.secret_name(name) is None:
            hits, learnt = self._hints.at_once(value), self._learnt
            if hits is not None and not (learnt and any(form in value for form in learnt)):
                return len(value) >= MIN_SECRET and bool(self._shown(value, hits))
        return self.named(name, value)[1] > 0

    def secret_name(self, name: str) -> str | None:
        """Return the kind of secret that values of an attribute or a member of this name are, `header` or `member`; else ``None``.

        ``http.request.header.x-api-key``, as instrumentations of HTTP name what they record, says what the header does.
        """
        try:
            return self._kinds[name]
        except KeyError:
            return _remember(self._kinds, name, self._kind_of(name))

    def _kind_of(self, name: str) -> str | None:
        lower = name.lower()
        if lower in self._members:
            return "header" if lower in self._headers else "member"
        if "header." in lower:
            header = lower.rpartition("header.")[2]
            if self._is_secret(header) or self._is_secret(header.replace("_", "-")):
                return "header"
        return None

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
        if value and self._is_secret(name) and not REPLACED.fullmatch(value):
            text, count = self._replacement("header", value), 1
        else:
            text, count = self.text(value)
        answer = (name, text), count
        if len(name) + len(value) <= _CACHE_NAME:
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
                kept[index] = kept[index][:start] + self._replacement("secret", kept[index][start:end]) + kept[index][end:]
        return [self.text(argument)[0] for argument in kept]

    def _is_secret(self, header: str) -> bool:
        try:
            return self._secret_headers[header]
        except KeyError:
            says = header.lower() in self._headers or header_says_secret(header, self.policy.header_words)
            return _remember(self._secret_headers, header, says)

    def _replacement(self, kind: str, secret: str) -> str:
        known = self._replacements.get((kind, secret))  # the credentials of a service come with each of its requests
        if known is None:
            known = self._made(kind, secret)
            if len(self._replacements) < _CACHE_SECRETS and len(secret) <= _CACHE_SECRET:
                self._replacements[kind, secret] = known
        return known

    def _made(self, kind: str, secret: str) -> str:
        scheme = _SCHEME.match(secret)
        plain = _unescaped(secret[scheme.end() :] if scheme else secret)
        digest = hmac.digest(self._key, plain.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:8]
        return f"%5Bredacted:{kind}:{digest}%5D" if kind == "userinfo" else f"[redacted:{kind}:{digest}]"

    def _long(self, text: str) -> tuple[str, int] | None:
        with self._lock:
            histories, learnt = self._answers.histories, self._learnt
        if any("}" in form for form in learnt):  # it could go on over a cut
            return None
        return histories.redact(text, lambda segment, size: self._segment(segment, size, learnt))

    def _segment(self, text: str, size: int, learnt: tuple[str, ...]) -> tuple[str, int] | None:
        spans, found = self._spans(text, learnt, is_cut=size < len(text))
        if found or any(span.end > size for span in spans):
            return None
        return self._replace(text[:size], spans) if spans else (text[:size], 0)

    def _spans(self, text: str, learnt: tuple[str, ...], *, is_cut: bool = False) -> tuple[list[Span], list[str]]:
        spans = self._shown(text, self._hints.of(text), is_cut=is_cut)
        return spans, [form for form in learnt if form in text] if learnt else []

    def _shown(self, text: str, hits: frozenset[Hint], *, is_cut: bool = False) -> list[Span]:
        if not hits and not ("@" in text and "://" in text):  # what a URL says of a user has no hint
            return []
        return [*self._tokens.spans(text, hits), *self._finder.spans(text, hits, is_cut=is_cut)]

    def _redact(self, text: str, learnt: tuple[str, ...]) -> tuple[str, int]:
        spans, found = self._spans(text, learnt)
        if not found:
            return self._replace(text, spans) if spans else (text, 0)
        for form in found:
            at = text.find(form)
            while at >= 0:
                spans.append(Span(at, at + len(form), "secret"))
                at = text.find(form, at + len(form))
        result = self._replace(text, spans)
        if _may_break_json(text, found):
            return self._by_tree(text, learnt, result)
        return result

    def _replace(self, text: str, spans: list[Span]) -> tuple[str, int]:
        spans.sort(key=_outer_first)
        parts: list[str] = []
        done = count = 0
        at = 0
        while at < len(spans):
            start, end, kind = spans[at]
            at += 1
            while at < len(spans) and spans[at].start < end:
                end = max(end, spans[at].end)
                at += 1
            parts += (text[done:start], self._replacement(kind, text[start:end]))
            done = end
            count += 1
        parts.append(text[done:])
        return "".join(parts), count

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
                return {walk(key): walk(value, key.lower()) for key, value in item.items()}
            if isinstance(item, list):
                return [walk(value) for value in item]
            if isinstance(item, str):
                if name in self._members and item and not REPLACED.fullmatch(item):
                    total += 1
                    return self._replacement("header" if name in self._headers else "member", item)
                redacted, count = self._redact(item, learnt)
                total += count
                return redacted
            if type(item) in {int, float} and any(form in json.dumps(item) for form in learnt):
                total += 1
                return self._replacement("secret", json.dumps(item))
            return item

        try:
            separators = (", ", ": ") if '": ' in text else (",", ":")
            return json.dumps(walk(tree), ensure_ascii=text.isascii(), separators=separators), total
        except (ValueError, RecursionError):
            return result


def mask(text: str) -> str:
    """Make every ``[redacted:KIND:xxxxxxxx]`` into ``[redacted:KIND]``, so that texts of two runs can be compared."""
    if "redacted:" not in text:
        return text
    return REPLACED.sub(lambda match: f"{match[0][: match.end(1) - match.start()]}{match[0][match.end(1) - match.start() + 9 :]}", text)


def _forms(secret: str) -> set[str]:
    """Return the secret as it looks in JSON, in JSON within JSON, in a repr, and in a URL."""
    forms = {secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}
    for ascii_only in (True, False):
        form = secret
        for _ in range(3):
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            forms.add(form)
    return forms


def _unescaped(secret: str) -> str:
    """Undo JSON escapes, however often they were applied, so that a secret has one digest at every depth."""
    for _ in range(4):
        if "\\" not in secret:
            break
        try:
            secret = json.loads(f'"{secret}"')
        except ValueError:
            break
    return secret


def _outer_first(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _may_break_json(text: str, found: list[str]) -> bool:
    if text.lstrip()[:1] not in {"{", "[", '"'} and not _NUMBER_LIKE.fullmatch(text.strip()):
        return False
    return "\\" in text or any(_NUMBER_LIKE.fullmatch(form) or not form.isalnum() for form in found)
