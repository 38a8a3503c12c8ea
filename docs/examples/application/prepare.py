"""A place to work in: a copy of the shop under version control, and its database. `python prepare.py` makes the folder `work`."""

import shutil
import sqlite3
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
WORK = Path("work")
AUTHOR = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]


def main() -> None:
    shutil.copytree(HERE / "shop", WORK, ignore=shutil.ignore_patterns("__pycache__"))
    for command in (["init", "--quiet"], ["add", "."], [*AUTHOR, "commit", "--quiet", "--message", "The shop as it is"]):
        subprocess.run(["git", *command], cwd=WORK, check=True)
    with sqlite3.connect("shop.db") as database:
        database.execute("create table orders (id integer primary key, total integer)")
        database.execute("insert into orders (total) values (350)")
    database.close()


if __name__ == "__main__":
    main()
