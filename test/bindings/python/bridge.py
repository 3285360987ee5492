"""Stands in for the executable: the test that listens at the socket runs the command line in its own process and answers."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall(json.dumps({"program": sys.argv[2], "args": sys.argv[3:], "environment": dict(os.environ)}).encode() + b"\n")
    with connection.makefile(encoding="utf-8") as answers:
        answer = json.loads(answers.readline())
sys.stdout.write(answer["stdout"])
sys.stderr.write(answer["stderr"])
sys.exit(answer["exitCode"])
