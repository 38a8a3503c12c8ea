"""The forms of secrets that show by themselves, anywhere in a text, each with the hints without which it is in none.

Every pattern is linear: possessive quantifiers, and a start that cannot begin again inside the run it has just read.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spanreplay.content._hints import Hint, preceded
from spanreplay.content._token_checks import (
    CURL,
    SETTINGS,
    anything,
    basic_like,
    bearer_like,
    beside_settings,
    has_digit_or_capital,
    key_like,
    no_code,
    of_curl,
    password_like,
    random_like,
    told,
    value_like,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One form of secret.

    Attributes:
        kind: Stands in the replacement, and in the policy.
        hints: Without a hit of one of these the form is not there.
        pattern: The form; its last group, or the whole of it, is the secret.
        check: What a pattern cannot tell.
        glued: It may follow an underscore, as in ``KEY_ghp_…``.
        around: The same of the text around it: the text, where the secret begins, where it ends.
        reach: So many characters before and after it that may look at, beyond its own sentence.
        anywhere: It may begin in the middle of a word; the pattern says where.
        lead: Characters of it before the match: a pattern that begins with plain letters is found several times faster.
    """

    kind: str
    hints: tuple[Hint, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = anything
    around: Callable[[str, int, int], bool] | None = None
    reach: int = 0
    glued: bool = False
    anywhere: bool = False
    lead: int = 0


# After a hyphen or an underscore they read on first, as far as the shortest of these secrets goes: few words are so long, and what stands
# before it is looked at last. What does not look back is shorter: an automaton takes long to be made for the rest of it.
_DASH: Final = (
    Hint(
        r"-(?:----begin|[a-z0-9_.-]{10}(?:(?<=sk-.{10})|(?<=glpat-.{10})|(?<=gl[rd]t-.{10})|(?<=xox[a-z]-.{10})|(?<=xapp-.{10})"
        r"|(?<=-hmac-sha25)|(?<=gocspx-.{10})|(?<=xai-.{10})|(?<=pplx-.{10})|(?<=nvapi-.{10})|(?<=pypi-a.{9})|(?<=tvly-.{10})"
        r"|(?<=sq0csp-.{10})|(?<=sq0atp-.{10})))",
        r"-----begin|-hmac-sha25|pypi-a|(?:sk|glpat|gl[rd]t|xox[a-z]|xapp|gocspx|xai|pplx|nvapi|tvly|sq0csp|sq0atp)-[a-z0-9_.-]{8}",
    ),
)
_UNDERSCORE: Final = (
    Hint(
        r"_(?<=[hpasrvec][opusrfmtk1a82cis]_)[a-z0-9_+/=]{15}(?:(?<=gh[opusr]_.{15})|(?<=hf_.{15})|(?<=npm_.{15})|(?<=github_pat_.{15})"
        r"|(?<=[rs]k_live.{11})|(?<=[rs]k_test.{11})|(?<=do[opr]_v1_.{15})|(?<=shp[a-z][a-z]_.{15})|(?<=gsk_.{15})|(?<=r8_.{15})"
        r"|(?<=whsec_.{15})|(?<=lsv2_[ps].{14})|(?<=lin_api_.{15}))",
        r"(?:gh[opusr]_|hf_|npm_|github_pat_|[rs]k_live|[rs]k_test|do[opr]_v1_|shp[a-z][a-z]_|gsk_|r8_|whsec_|lsv2_[ps]|lin_api_)"
        r"[a-z0-9_+/=]{8}",
    ),
)
_CAPITAL_A: Final = (Hint(r"A(?:KIA|SIA|Iza)[A-Za-z0-9_-]{16}", r"A(?:KIA|SIA|Iza)[A-Za-z0-9_-]{8}", exact=True),)
_DOT: Final = (
    Hint(
        r"\.(?<=[S2v][G9sbr]\.)(?:(?<=SG\.)|(?<=ya29\.)(?:[a-z]\.)?|(?<=hv[sbr]\.))[A-Za-z0-9_-]{16}",
        r"(?:SG|ya29|hv[sbr])\.[A-Za-z0-9_.-]{8}",
        exact=True,
    ),
)
_J: Final = (Hint(r"J(?<=eyJ)[A-Za-z0-9_-]{6}", r"eyJ[A-Za-z0-9_-]{6}", exact=True),)
_GAP: Final = r"[\x00-\x20\x80-\xff]"  # a byte of white space, or of what may be
_B: Final = (
    Hint(
        r"b(?:earer|asic)[\t-\r ]",
        rf"bearer{_GAP}{{1,12}}(?:[a-z._~+/=\\-]{{0,23}}[0-9]|[a-z0-9._~+/=\\-]{{20}})"
        rf"|basic{_GAP}{{1,12}}(?:[a-z0-9+/]{{4}})*(?:[a-z0-9+/]{{4}}(?:[^a-z0-9+/]|$)|[a-z0-9+/]{{3}}=|[a-z0-9+/]{{2}}==)",
    ),
)
"""What the checks ask of a token, too: prose has these words often, source code the names below."""

_NAMES: Final = (
    *(
        f"{word}{hyphen}[Kk][Ee][Yy]"
        for word in ("[Aa][Pp][Ii]", "[Aa][Cc][Cc][Ee][Ss][Ss]", "[Ss][Ee][Cc][Rr][Ee][Tt]", "[Aa][Cc][Cc][Oo][Uu][Nn][Tt]")
        for hyphen in ("", "[-_ ]")
    ),
    *("[Tt][Oo][Kk][Ee][Nn]", "[Ss][Ee][Cc][Rr][Ee][Tt]", "[Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz][Aa][Tt][Ii][Oo][Nn]"),
    *(f"[Pp][Aa][Ss][Ss]{rest}[Dd]" for rest in ("", "[Ww]", "[Ww][Oo][Rr]", "[Ww][Oo][Rr][Ww]")),
)
_VALUE: Final = r"([A-Za-z0-9+/=_.~!@$^*-]{6,}+)"
_ENDS: Final = ("key", "token", "secret", "passd", "passwd", "password", "passworwd", "authorization")
_PASSWORDS: Final = (
    *(
        "password",
        "passwort",
        "passwd",
        "passphrase",
        "passcode",
        "kennwort",
        "mot de passe",
        "contrase\u00f1a",
        "contrasena",
        "wachtwoord",
    ),
    "senha",
)
"""In some of the languages in which people tell each other."""
_LIKELY: Final = r"(?:[a-z+/=_.~!@$^*-]{0,23}[0-9]|[a-z0-9+/=_.~!@$^*-]{24})"
"""What `value_like` asks of a `_VALUE`."""
_EQUALS: Final = (
    preceded("=", (*_ENDS, "pwd", "access_key "))._replace(
        forward=rf"(?:passd|passwd|password|passworwd|pwd)=[^\s;\"'\\&]{{3}}|(?:key|token|secret|authorization)={_LIKELY}"
        rf"|access_key ?={_GAP}{{0,12}}[\\\"']{{0,8}}[a-z0-9/+]{{16}}"
    ),
)
_COLON: Final = (
    preceded(":", _ENDS)._replace(
        forward=rf"authorization:{_GAP}{{0,12}}digest|(?:{'|'.join(_ENDS)}):{_GAP}{{1,6}}(?:basic{_GAP}{{1,3}})?{_LIKELY}"
    ),
)
_COLON_SAID: Final = (preceded(":", (*_PASSWORDS, *(f"{word} " for word in _PASSWORDS), "cookie")),)
_COLON_SLASHES: Final = (Hint(r"://(?:hooks\.sl|api\.tel|[^/?#\s]{0,84}discord)", r"://hooks\.sl|://api\.tel|discord(?:app)?\.com/api"),)
_SAYS: Final = " (?:is|was|are|ist|war|lautet|for|of|to|f..r|von|zu) "
_SAID: Final = (Hint(rf"passw(?:or[dt]|d){_SAYS}"), Hint(rf"kennw(?:or[dt]|d){_SAYS}"))
_SAID_K: Final = (
    Hint(
        r"k(?:ey(?<=[ites][ _-]key)(?<=(?:api|ret|ess|ate)....)|en(?<=token)) (?:is|was|ist|lautet|for) ",
        r"(?:(?:api|ret|ess|ate)[ _-]key|token) (?:is|was|ist|lautet|for) ",
    ),
)
_USER: Final = (Hint(r"-(?:u|user|proxy-user)[ =]"),)
# They begin with the mark and look back for the name, first for its last letter: a name is tried nowhere else, which is many times faster.
_NAMED_EQUALS: Final = re.compile(f"=(?<=[DdNnTtYy]=)(?:{'|'.join(f'(?<={name}=)' for name in _NAMES)}){_VALUE}")
_NAMED_COLON: Final = re.compile(rf":(?<=[DdNnTtYy]:)(?:{'|'.join(f'(?<={name}:)' for name in _NAMES)})\s{{1,2}}(?:[Bb]asic\s)?{_VALUE}")
"""A credential after its name in running text, an exception's for one: ``token=…``, ``x-api-key: …``."""

_HYPHENATED: Final = re.compile(
    r"(?:GOCSPX-[A-Za-z0-9_-]{20,}+|pypi-A[A-Za-z0-9_-]{30,}+|(?:xai|pplx)-[A-Za-z0-9]{40,}+|nvapi-[A-Za-z0-9_-]{40,}+"
    r"|tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}+|sq0(?:csp|atp)-[A-Za-z0-9_-]{20,}+)"
)
_UNDERSCORED: Final = re.compile(
    r"(?:do[opr]_v1_[a-f0-9]{40,}+|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32,}+|gsk_[A-Za-z0-9]{40,}+|r8_[A-Za-z0-9]{30,}+|whsec_[A-Za-z0-9+/=]{20,}+"
    r"|lsv2_(?:pt|sk)_[A-Za-z0-9_]{30,}+|lin_api_[A-Za-z0-9]{30,}+)"
)
_DOTTED: Final = re.compile(r"(?:ya29\.(?:[a-z]\.)?[A-Za-z0-9_-]{20,}+|hv[sbr]\.[A-Za-z0-9_-]{20,}+)")
"""Google, PyPI, xAI, Perplexity, NVIDIA, Tavily, Square; DigitalOcean, Shopify, Groq, Replicate, webhooks' signatures, LangSmith, Linear;
Google, Vault."""


_AWS_VALUE: Final = r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
_BESIDE_AWS_KEY: Final = re.compile(
    rf"A(?:KIA|SIA)[A-Z0-9]{{16}}(?:[^A-Za-z0-9/+=}}]{{1,12}}+[A-Za-z_]{{1,40}}+){{0,5}}[^A-Za-z0-9/+}}]{{1,12}}+{_AWS_VALUE}"
)
"""The secret after the id of its key, with a few words between them: credentials in a table, in a settings file, in prose."""
_AWS_SECRET: Final = re.compile(rf"=(?:(?<=(?i:access_key)=)|(?<=(?i:access_key) =))\s{{0,4}}+[\\\"']{{0,8}}+{_AWS_VALUE}")
_COOKIES: Final = re.compile(r":(?<=(?i:cookie):)[ \t]{0,4}+([!#$%&'*+.^`|~\w-]{1,128}+=[^\r\n\"'\\]++)")
_DIGEST: Final = re.compile(
    r":(?<=(?i:authorization):)\s{0,4}+[Dd]igest\s{1,4}+"
    r"((?:[A-Za-z-]{2,20}+=(?:(?P<run>\\{0,7}+)\"[^\"\\\r\n]*+(?P=run)\"|[^\s,;\"'\\]++)(?:,\s{0,2}+(?=[A-Za-z-]{2,20}+=))?+)++)"
)
"""What answers the challenge of a server (RFC 7616): user, nonces and the hash of all with the password, from which it can be guessed."""
_QUOTED: Final = r"\s{1,2}+(?:\\{0,7}+[\"'`\u201c\u201e\u00ab*]{1,3}+)?([^\s\"'`\\<>()\[\]{}\u201d\u201c\u00bb,;]{6,80}+)"
_OF: Final = r"(?:\s(?:for|of|to|f\u00fcr|von|zu)\s[^\s:={}]{1,40}+(?:\s[^\s:={}]{1,40}+){0,2}?)?"
_IS: Final = r"(?:\s{1,2}+(?:is|was|are|ist|war|lautet)(?:\s?:)?|\s?[:=])"
_COLON_PASSWORD: Final = re.compile(rf":(?:{'|'.join(f'(?<=(?i:{word}):)|(?<=(?i:{word}) :)' for word in _PASSWORDS)}){_QUOTED}")
_SAID_PASSWORD: Final = re.compile(
    rf"w(?:(?<=(?i:passw))|(?<=(?i:kennw)))(?:or[dt]|d)(?= (?i:is|was|are|ist|war|lautet|for|of|to|f\u00fcr|von|zu) ){_OF}{_IS}{_QUOTED}"
)
_SAID_KEY: Final = re.compile(
    rf"k(?:ey|en)(?= (?i:is|was|ist|lautet|for) )(?:(?<=(?i:api|ret|ess|ate)[ _-]key)|(?<=(?i:tok)en)){_OF}{_IS}{_QUOTED}"
)
"""What a sentence says is the password: a value with a digit or sign that words do not have, else see :mod:`_plain_passwords`."""
_CONNECTION: Final = re.compile(r"=(?:(?<=(?i:password)=)|(?<=(?i:passwd)=)|(?<=(?i:pwd)=))([^\s;\"'\\&]{3,}+)")
_CURL_USER: Final = re.compile(r"-(?:u|-user|-proxy-user)[ =][\\\"']{0,8}+[^\s:\"'\\]{1,64}+:([^\s\"'\\]{3,}+)")
_WEBHOOK: Final = re.compile(
    r"://(?:hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,}+)|api\.telegram\.org/bot([0-9]{6,12}:[A-Za-z0-9_-]{30,}+)"
    r"|(?:\w{1,20}\.)?discord(?:app)?\.com/api/webhooks/([0-9]{10,25}/[A-Za-z0-9_-]{40,}+))"
)

_BEARER: Final = r"\s{1,4}+((?:[A-Za-z0-9._~+/=-]++|\\++/)++)"
_BASIC: Final = r"\s{1,4}+([A-Za-z0-9+/]{4,}+={0,2})"

_START: Final = r"(?:(?<![A-Za-z0-9_-]eyJ)|(?<=\\[nrtbf]eyJ)|(?<=\\u[0-9a-fA-F]{4}eyJ)|(?<=%[0-9a-fA-F]{2}eyJ))"

TOKENS: Final[tuple[Token, ...]] = (
    Token(
        kind="private_key",
        hints=_DASH,
        pattern=re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:\\++[nr/]|[A-Za-z0-9+/=\s:,.]|-(?!----))*+-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\\++[nr]|\s)*+[A-Za-z0-9+/=]{16,}+)++)"
        ),
    ),
    Token(kind="anthropic_key", hints=_DASH, pattern=re.compile(r"sk-ant-[A-Za-z0-9_-]{8,}+"), check=key_like, glued=True),
    Token(kind="openai_key", hints=_DASH, pattern=re.compile(r"sk-(?!ant-)[A-Za-z0-9_-]{12,}+"), check=key_like, glued=True),
    Token(kind="slack_token", hints=_DASH, pattern=re.compile(r"x(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}+"), glued=True),
    Token(
        kind="aws_signature",
        hints=_DASH,
        pattern=re.compile(r"AWS4-HMAC-SHA256\s{1,4}+(Credential=[^\s\"'\\]++(?:,?\s{0,2}(?:SignedHeaders|Signature)=[^\s\"'\\]++){0,2})"),
    ),
    Token(kind="github_token", hints=_UNDERSCORE, pattern=re.compile(r"g(?:h[opusr]|ithub_pat)_[A-Za-z0-9_]{16,}+"), glued=True),
    Token(
        kind="gitlab_token",
        hints=_DASH,
        pattern=re.compile(r"gl(?:pat|rt|dt)-[A-Za-z0-9_.-]{16,}+"),
        check=has_digit_or_capital,
        glued=True,
    ),
    Token(kind="api_token", hints=_DASH, pattern=_HYPHENATED, check=has_digit_or_capital, glued=True),
    Token(kind="api_token", hints=_UNDERSCORE, pattern=_UNDERSCORED, check=has_digit_or_capital, glued=True),
    Token(kind="api_token", hints=_DOT, pattern=_DOTTED, check=has_digit_or_capital, glued=True),
    Token(kind="huggingface_token", hints=_UNDERSCORE, pattern=re.compile(r"hf_[A-Za-z0-9]{28,}+"), glued=True),
    Token(kind="npm_token", hints=_UNDERSCORE, pattern=re.compile(r"npm_[A-Za-z0-9]{36,}+"), glued=True),
    Token(kind="sendgrid_key", hints=_DOT, pattern=re.compile(r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"), glued=True),
    Token(kind="stripe_key", hints=_UNDERSCORE, pattern=re.compile(r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"), glued=True),
    Token(kind="aws_key", hints=_CAPITAL_A, pattern=re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"), glued=True),
    Token(kind="google_key", hints=_CAPITAL_A, pattern=re.compile(r"AIza[A-Za-z0-9_-]{30,}+"), glued=True),
    Token(kind="aws_secret", hints=_CAPITAL_A, pattern=_BESIDE_AWS_KEY, check=random_like, glued=True),
    Token(kind="aws_secret", hints=_EQUALS, pattern=_AWS_SECRET, check=random_like, anywhere=True),
    Token(kind="digest", hints=_COLON, pattern=_DIGEST, anywhere=True),
    Token(kind="cookie", hints=_COLON_SAID, pattern=_COOKIES, anywhere=True),
    Token(kind="webhook", hints=_COLON_SLASHES, pattern=_WEBHOOK, anywhere=True),
    Token(kind="password", hints=_COLON_SAID, pattern=_COLON_PASSWORD, check=password_like, anywhere=True),
    Token(kind="password", hints=_SAID, pattern=_SAID_PASSWORD, around=told, anywhere=True),
    Token(kind="named", hints=_SAID_K, pattern=_SAID_KEY, check=password_like, anywhere=True),
    Token(kind="password", hints=_EQUALS, pattern=_CONNECTION, check=no_code, around=beside_settings, reach=SETTINGS, anywhere=True),
    Token(kind="password", hints=_USER, pattern=_CURL_USER, around=of_curl, reach=CURL, anywhere=True),
    Token(
        kind="jwt",
        hints=_J,
        pattern=re.compile(rf"eyJ{_START}[A-Za-z0-9_-]{{6,}}+\.[A-Za-z0-9_-]{{6,}}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){{0,2}}"),
    ),
    Token(
        kind="jwt",
        hints=_J,
        pattern=re.compile(r"eyJ(?<=[A-Za-z]_eyJ)[A-Za-z0-9_-]{6,512}+\.[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]*+"),
        glued=True,
    ),
    Token(kind="bearer", hints=_B, pattern=re.compile(rf"earer(?<=[Bb]earer){_BEARER}"), check=bearer_like, lead=1),
    Token(kind="bearer", hints=_B, pattern=re.compile(rf"EARER(?<=[Bb]EARER){_BEARER}"), check=bearer_like, lead=1),
    Token(kind="named", hints=_EQUALS, pattern=_NAMED_EQUALS, check=value_like, anywhere=True),
    Token(kind="named", hints=_COLON, pattern=_NAMED_COLON, check=value_like, anywhere=True),
    Token(kind="basic", hints=_B, pattern=re.compile(rf"asic(?<=[Bb]asic){_BASIC}"), check=basic_like, lead=1),
    Token(kind="basic", hints=_B, pattern=re.compile(rf"ASIC(?<=[Bb]ASIC){_BASIC}"), check=basic_like, lead=1),
)
"""Every form, in the order in which they are named in a policy."""
