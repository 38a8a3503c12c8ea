"""The redaction policy: what is a secret by its name, and which forms of secret are looked for. It holds no secret itself."""

import json
import secrets
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Final

from spanreplay.content._names import WORDS
from spanreplay.content._token_forms import TOKENS

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
