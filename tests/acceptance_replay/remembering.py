"""An agent that goes on from what it finds on disk: a database, a log that it appends to, a file that it replaces."""

import json
import os
import sqlite3
import sys
from pathlib import Path

from spanreplay.instrumentation import tool


@tool(effect="read")
def think(about: object) -> str:
    """Think about it."""
    return f"thought of {about}"


here = Path.cwd() if "absolute" in sys.argv else Path()
db = sqlite3.connect(here / "memory.db")
db.execute("create table if not exists seen (n int)")
(count,) = db.execute("select count(*) from seen").fetchone()
print(think(count))
db.execute("insert into seen values (?)", (count,))
db.commit()
with (here / "logs" / "agent.log").open("a+") as log:
    log.seek(0)
    print(think(log.read()))
    log.write(f"{count}\n")
notes = here / "notes.json"
known = json.loads(notes.read_text()) if notes.exists() else []
(here / "notes.json.new").write_text(json.dumps([*known, count]))
os.replace(here / "notes.json.new", notes)
print(think(known))
