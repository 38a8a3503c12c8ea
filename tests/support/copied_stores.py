"""Imported by a nursery: new stores of its programs are copies of one too, which is there before the first of them begins."""

import os
from pathlib import Path
from typing import Final

from spanreplay.store import database
from spanreplay.store.engines import close_idle
from spanreplay.store.store import Store
from support import store_template

_FOLDER: Final = Path(os.environ["NURSERY_FOLDER"])

database._open_for_writing = store_template.copying(_FOLDER / "template")
with Store.open(_FOLDER / "store", create=True) as _store, _store.reading():
    pass
close_idle()
