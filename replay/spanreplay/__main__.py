"""``python -m spanreplay``."""

from spanreplay.cli.main import main

main()
