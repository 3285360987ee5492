"""A program of the machine that its manager answers: `call.py FOLDER PROGRAM ARGUMENTS...`, with `machine.json` in the folder."""

import json
import os
import socket
import sys


def ask_manager(port, token, program, arguments):
    """Returns the status and output of a program of that name; None when the machine goes down during the request."""
    request = {"token": token, "program": program, "arguments": arguments, "directory": os.getcwd()}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(json.dumps(request).encode() + b"\n")
        text = b""
        while True:
            piece = connection.recv(65536)
            if not piece:
                break
            text += piece
    return json.loads(text.decode()) if text else None


def main():
    folder, program = sys.argv[1:3]
    try:
        with open(os.path.join(folder, "machine.json"), encoding="utf-8") as file:
            machine = json.load(file)
        answer = ask_manager(machine["port"], machine["token"], program, sys.argv[3:])
    except OSError as error:
        sys.stderr.write("%s: the manager of this machine does not answer: %s\n" % (program, error))
        return 1
    if answer is None:
        return 1
    sys.stdout.write(answer["stdout"])
    sys.stderr.write(answer["stderr"])
    return answer["exitCode"]


if __name__ == "__main__":
    sys.exit(main())
