"""boto3 over botocore: its requests pass the seam of urllib3; this sees the end of an event stream that reports an error.

Nothing follows such an event, but botocore neither reads on nor closes the response: it would end whenever it is collected.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from spanreplay.instrumentation.hooks import Hooks, expect
from spanreplay.instrumentation.patching import Patches


def _patch(module: ModuleType, patches: Patches) -> None:
    expect(module.EventStream, "_parse_event", ["self", "event"])
    patches.replace(module.EventStream, "_parse_event", _ending)


_hooks: Final = Hooks("botocore", {"botocore.eventstream": _patch})
NAME: Final = _hooks.name
install, uninstall, status = _hooks.install, _hooks.uninstall, _hooks.status


def _ending(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(original)
    def _parse_event(self: Any, event: Any) -> Any:
        try:
            return original(self, event)
        except Exception:
            exchange = getattr(getattr(self, "_raw_stream", None), "_spanreplay_exchange", None)
            if exchange is not None:
                exchange.closed()
            raise

    return _parse_event
