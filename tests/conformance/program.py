"""``python -m conformance.program JOB``: a program as an ordinary command, for recorders of commands.

Its last line of output is how it ended.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from conformance.child import described, program
from conformance.driver import Replayed, load
from conformance.scenario import scenarios
from conformance.world import Job, World

ENDED = "@@ ended "


def main() -> int:
    """Run it."""
    job = Job.from_json(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    run = program(scenarios()[job.scenario], World(job, load(Path(job.driver))))
    try:
        replayed = Replayed(value=run())
    except Exception as error:
        replayed = Replayed(error=described(error))
    print(ENDED + json.dumps(asdict(replayed)), flush=True)
    return 0 if replayed.error is None else 1


if __name__ == "__main__":
    raise SystemExit(main())
