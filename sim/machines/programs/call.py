"""A program of the machine that its manager answers: `call.py PORT TOKEN PROGRAM ARGUMENTS...`."""

import json
import os
import socket
import sys


def main():
    port, token, program = sys.argv[1:4]
    request = {"token": token, "program": program, "arguments": sys.argv[4:], "directory": os.getcwd()}
    try:
        with socket.create_connection(("127.0.0.1", int(port))) as connection:
            connection.sendall(json.dumps(request).encode() + b"\n")
            text = b""
            while True:
                piece = connection.recv(65536)
                if not piece:
                    break
                text += piece
    except OSError as error:
        sys.stderr.write("%s: the manager of this machine does not answer: %s\n" % (program, error))
        return 1
    if not text:
        # The machine goes down while it is asked.
        return 1
    answer = json.loads(text.decode())
    sys.stdout.write(answer["stdout"])
    sys.stderr.write(answer["stderr"])
    return answer["exitCode"]


if __name__ == "__main__":
    sys.exit(main())
