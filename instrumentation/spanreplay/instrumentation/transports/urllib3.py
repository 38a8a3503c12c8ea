"""HTTP through ``urllib3`` 2, and so through requests, botocore (boto3) and everything else that stands on it.

``HTTPConnectionPool._make_request`` is one request on the wire: redirects and retries call it again, and every library above calls it once
for what it sends, so that one exchange is one step however many layers it passes.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.http_sending import send
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import untaped
from spanreplay.instrumentation.urllib3_shell import Sent, body_of

_PARAMETERS: Final = ("self", "conn", "method", "url", "body", "headers", "retries", "response_conn", "preload_content", "decode_content")


def _patch(module: ModuleType, patches: Patches) -> None:
    expect(module.HTTPConnectionPool, "_make_request", [*_PARAMETERS, "enforce_content_length"])
    patches.replace(module.HTTPConnectionPool, "_make_request", _observed)
    for pool in (module.HTTPConnectionPool, module.HTTPSConnectionPool):
        expect(pool, "_prepare_proxy", ["self", "conn"])
        patches.replace(pool, "_prepare_proxy", _through)


_hooks: Final = Hooks("urllib3", {"urllib3.connectionpool": _patch})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _observed(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _make_request(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        asked = bound.arguments
        preload = asked["preload_content"]
        asked["preload_content"] = False  # what is read inside would pass unseen

        def read() -> bytes:
            body = body_of(asked["body"])
            if asked["body"] is not None:
                asked["body"] = body
            return body

        response = send(
            Sent(sys.modules["urllib3"], self, scope, asked),
            read,
            lambda: original(*bound.args, **bound.kwargs),
        )
        if preload:
            response._body = response.read(decode_content=asked["decode_content"])
        return response

    return _make_request


def _through(original: Callable[..., Any]) -> Callable[..., Any]:
    """A tunnel through a proxy is made before the request that it is for: a replay needs none, and a recording does not name it."""

    @functools.wraps(original)
    def _prepare_proxy(self: Any, conn: Any) -> Any:
        scope = here()
        if scope is None:
            return original(self, conn)
        if scope.session.mode == "replay":
            return None
        with untaped.unnamed():
            return original(self, conn)

    return _prepare_proxy
