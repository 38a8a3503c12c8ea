"""An agent that tells another service something over a bare socket, past everything that is recorded: ``socket_agent.py PORT``."""

import json
import socket
import sys

from spanreplay.instrumentation import agent_run

if __name__ == "__main__":
    with agent_run("messenger") as this:
        with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as line:
            line.sendall(b"hello\n")
        this.output = "told"
    print(json.dumps({"output": this.output}))
