"""Options of every command that may fetch traces from a back end."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from spanreplay.cli.options import WrongUse
from spanreplay.cli.sections import under

if TYPE_CHECKING:
    from spanreplay.replay.inputs.remote import Access

F = TypeVar("F", bound=Callable[..., Any])

_KEPT: Final = "spanreplay.fetching."
_KEPT_TO_SEND: Final = "spanreplay.sending."
_TO_ENDPOINT: Final = ("--bearer-token-env", "--ca")
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


def fetching(function: F) -> F:
    """``--header``, ``--bearer-token-env``, ``--basic-auth-env``, ``--tenant``, ``--ca``, ``--cert``, ``--key``, ``--timeout``."""
    made = (click.option(*name, expose_value=False, callback=_keep, **options) for name, options in _OPTIONS)
    return cast("F", under("Back ends", *made)(function))


def sending_to(function: F) -> F:
    """``--bearer-token-env`` and ``--ca``, for an endpoint; kept apart, so that no back end that is asked gets to see the token."""
    made: Any = function
    for name, options in reversed(_OPTIONS):
        if name[0] in _TO_ENDPOINT:
            made = click.option(*name, expose_value=False, callback=_keep_to_send, **options)(made)
    return cast("F", made)


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    context.meta[f"{_KEPT}{parameter.name}"] = value


def _keep_to_send(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    context.meta[f"{_KEPT_TO_SEND}{parameter.name}"] = value


_OPTIONS: Final[tuple[tuple[tuple[str, ...], dict[str, Any]], ...]] = (
    (("--header",), {"multiple": True, "metavar": "NAME=VALUE", "help": "Header of every request to a back end. May be repeated."}),
    (("--bearer-token-env",), {"metavar": "VARIABLE", "help": "Environment variable with a bearer token."}),
    (("--basic-auth-env",), {"metavar": "VARIABLE", "help": "Environment variable with USER:PASSWORD for the back end."}),
    (("--tenant",), {"metavar": "NAME", "help": "Tenant of the back end."}),
    (("--ca",), {"type": _FILE, "help": "Certificates to trust instead of the system's."}),
    (("--cert",), {"type": _FILE, "help": "Certificate to show to the back end."}),
    (("--key",), {"type": _FILE, "help": "Key of --cert, where it is in another file."}),
    (
        ("--timeout",),
        {
            "type": click.FloatRange(min=0.1),
            "metavar": "SECONDS",
            "default": 30.0,
            "show_default": True,
            "help": "To wait for it.",
        },
    ),
)


def endpoint_access() -> "Access":
    """How to reach an endpoint, from the options of :func:`sending_to`.

    Raises:
        WrongUse: an option does not say what it has to.
    """
    return _access(_KEPT_TO_SEND)


def access() -> "Access":
    """How to reach a back end, from the options of the command that runs.

    Raises:
        WrongUse: an option does not say what it has to.
    """
    return _access(_KEPT)


def _access(kept: str) -> "Access":
    from spanreplay.replay.inputs.remote import Access

    context = click.get_current_context(silent=True)
    given: dict[str, Any] = {
        key.removeprefix(kept): value for key, value in (context.meta if context is not None else {}).items() if key.startswith(kept)
    }
    headers = dict(_pair(text) for text in given.get("header") or ())
    basic = _variable("--basic-auth-env", given.get("basic_auth_env"))
    user, colon, password = (basic or "").partition(":")
    if basic is not None and not colon:
        raise WrongUse(f"--basic-auth-env: wanted USER:PASSWORD in {given['basic_auth_env']}, found a text without a colon")
    return Access(
        headers=headers,
        bearer=_variable("--bearer-token-env", given.get("bearer_token_env")),
        basic=(user, password) if basic is not None else None,
        tenant=given.get("tenant"),
        ca=given.get("ca"),
        cert=given.get("cert"),
        key=given.get("key"),
        timeout_s=given.get("timeout") or Access().timeout_s,
    )


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise WrongUse(f"--header: wanted NAME=VALUE, found {name!r}")
    return name.strip(), value


def _variable(option: str, name: str | None) -> str | None:
    if name is None:
        return None
    value = os.environ.get(name)
    if not value:
        raise WrongUse(f"{option}: wanted a variable of the environment, found none named {name!r}, or an empty one")
    return value
