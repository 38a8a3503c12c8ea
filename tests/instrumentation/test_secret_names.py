"""Names of headers and options that say secret, and what a command line gives away."""

import pytest

from spanreplay.content._arguments import secret_places
from spanreplay.content._names import header_says_secret, option_says_secret
from spanreplay.content.credentials import argument_secrets
from spanreplay.content.redaction import RedactionPolicy, Redactor, mask

SECRET_HEADERS = """
    x-custom-token x-auth X-Session-Id x-vault-secret x-access-key x-subscription-key ocp-apim-subscription-key x-functions-key x-api-key
    api-key authorization proxy-authorization x-auth-token x-auth-key x-user-password x_passwd x-my-credentials x-hub-signature-256
    x-apikey x-jwt-assertion x-bearer x-shopify-access-token mcp-session-id x-amz-security-token cookie x-rapidapi-key X-ApiKey
""".split()
ORDINARY_HEADERS = """
    x-ratelimit-remaining-tokens x-ratelimit-limit-tokens anthropic-ratelimit-tokens-remaining x-ratelimit-token max-tokens x-max-token
    request-id x-request-id idempotency-key anthropic-version content-type openai-processing-ms www-authenticate x-token-type
    access-control-allow-credentials x-token-expires-in x-next-page-token surrogate-key cf-cache-status sec-websocket-key author
    x-authors x-tokenizer openai-organization user-agent accept x-stainless-retry-count traceparent etag
""".split()


@pytest.mark.parametrize("name", SECRET_HEADERS)
def test_headers_that_hold_a_secret(name: str) -> None:
    assert header_says_secret(name)
    redactor = Redactor(RedactionPolicy.default())
    assert mask(redactor.headers([(name, "abc")])[0][0][1]) == "[redacted:header]"


@pytest.mark.parametrize("name", ORDINARY_HEADERS)
def test_headers_that_hold_none(name: str) -> None:
    assert not header_says_secret(name)
    assert Redactor(RedactionPolicy.default()).headers([(name, "abcdefghi")]) == ([(name, "abcdefghi")], 0)


def test_headers_of_ones_own_are_known_in_texts_too() -> None:
    redactor = Redactor(RedactionPolicy.default())
    text = '{"headers": {"x-custom-token": "HDRTOK", "x-ratelimit-token": "12", "my-token": "page"}}'
    assert mask(redactor.text(text)[0]) == (
        '{"headers": {"x-custom-token": "[redacted:header]", "x-ratelimit-token": "12", "my-token": "page"}}'
    )


@pytest.mark.parametrize(
    "name",
    "api-key apiKey OPENAI_API_KEY token access_token clientSecret password PGPASSWORD openai-key auth hf_token API_KEY_2 jwt pass".split(),
)
def test_options_that_hold_a_secret(name: str) -> None:
    assert option_says_secret(name)


@pytest.mark.parametrize(
    "name",
    "key sort-key token-limit max-tokens max-token password-file api-key-env session p tokenizer auth-type monkey keys author 1".split(),
)
def test_options_that_hold_none(name: str) -> None:
    assert not option_says_secret(name)


@pytest.mark.parametrize(
    ("argv", "secrets"),
    [
        (["a.py", "--api-key=CMDKEY123"], ["CMDKEY123"]),
        (["--token", "X", "--verbose"], ["X"]),
        (["-token", "X"], ["X"]),
        (["--token", "--verbose"], []),
        (["--token", "-v", "x"], []),
        (["--token", "-Zm9vYmFyMTIz"], ["-Zm9vYmFyMTIz"]),
        (["-p", "secret", "--port", "80"], []),
        (["OPENAI_API_KEY=abc", "model.api_key=def", "++auth.token=ghi", "TOKEN_LIMIT=5"], ["abc", "def", "ghi"]),
        (["--key", "id", "key=name"], []),
        (["--key=a1b2c3d4e5f6a7b8c9"], ["a1b2c3d4e5f6a7b8c9"]),
        (["--credentials", "/etc/key.json", "--private-key", "id.pem", "--auth=none", "--auth", "basic"], []),
        (["--token", "5", "--max-tokens", "500"], []),
        (["https://me:p%40ss@host/x?api_key=q1&page=2"], ["p%40ss", "q1"]),
        (["--base-url=postgres://me:hunter22@host/db"], ["hunter22"]),
        (["-H", "X-Auth-Token: abc", "-H", "Authorization: Bearer def", "-H", "Accept: x"], ["abc", "def"]),
        (["-u", "me:secret1", "-u", "a.py", "--user", "host:80"], ["secret1"]),
        (["--api-key=[redacted:secret:01234567]", "--token", "[redacted:secret:01234567]"], []),
        (["python", "-c", "token=read();print(token)", "--token=abc"], ["abc"]),
        (["a.py", "-c", "model.api_key=abc"], ["abc"]),
        ([], []),
    ],
)
def test_secrets_of_a_command_line(argv: list[str], secrets: list[str]) -> None:
    assert [argv[index][start:end] for index, start, end in secret_places(argv)] == secrets


def test_a_command_line_is_redacted_in_its_place_and_learnt() -> None:
    argv = ["python", "a.py", "--api-key=CMDKEY123", "--token", "short", "http://u:PASSURL12@h/", "--name", "short"]
    redactor = Redactor(RedactionPolicy.default())
    kept = redactor.arguments(argv)
    assert [mask(word) for word in kept] == [
        *("python", "a.py", "--api-key=[redacted:secret]", "--token", "[redacted:secret]"),
        *("http://%5Bredacted:userinfo%5D@h/", "--name", "short"),
    ]
    assert redactor.arguments(kept) == kept
    assert argument_secrets(argv) == ["CMDKEY123", "PASSURL12"]
    for secret in argument_secrets(argv):
        redactor.learn(secret)
    assert kept[2] == f"--api-key={redactor.text('CMDKEY123')[0]}", "a replay of the kept command must match what was recorded"


def test_a_policy_that_takes_nothing_out_leaves_the_command_line() -> None:
    argv = ["--api-key=CMDKEY123", "--token", "abcdefgh1"]
    assert Redactor(RedactionPolicy.none()).arguments(argv) == argv


def test_a_policy_of_an_older_recording_has_no_header_words() -> None:
    old = '{"version":1,"salt":"00","headers":["cookie"],"members":[],"query":[],"patterns":[],"enabled":true}'
    redactor = Redactor(RedactionPolicy.from_json(old))
    assert redactor.headers([("x-custom-token", "abcdefghi")])[1] == 0
