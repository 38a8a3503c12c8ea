"""The JSON of lists whose items come again with each request of a conversation: an item is read and written once."""

from collections.abc import Callable, Sequence

from spanreplay.instrumentation._conversations import Member
from spanreplay.instrumentation._lenient import dumps, plainly
from spanreplay.instrumentation._remembered import remembered


def written(items: Sequence[object], make: Callable[[object], object]) -> str:
    """Return ``dumps([make(item) for item in items])``.

    Args:
        items: of a parsed body.
        make: a function of a module, which looks at nothing but the item.
    """
    try:
        return "[" + ",".join([_of(item, make) if type(item) is Member else remembered(item, make, plainly) for item in items]) + "]"
    except (ValueError, TypeError, RecursionError):  # one is no plain JSON: the list is written in another way then
        return dumps([make(item) for item in items])


def _of(member: Member, make: Callable[[object], object]) -> str:
    made = member.made.get(make)
    if made is None:
        made = member.made[make] = plainly(make(member))
    return made
