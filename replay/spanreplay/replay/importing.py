"""Records of others into the store, with the runs that they make."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from spanreplay.replay.runs import index
from spanreplay.spans.record import Record

if TYPE_CHECKING:
    from spanreplay.store.store import AddReport, Store

ORIGIN: Final = "import"


def import_records(store: "Store", records: Iterable[Record]) -> "AddReport":
    """Stores the records and derives their runs. Importing the same ones again changes nothing.

    Args:
        store: where to; other processes may use it meanwhile.
        records: read once, in batches: memory does not grow with their number.

    Raises:
        StoreError: The store cannot be read or written.
    """
    report = store.add(records, origin=ORIGIN)
    index(store)
    return report
