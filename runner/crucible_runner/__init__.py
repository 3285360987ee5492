"""The runner: the program on the machine. Its interface to the rest of Crucible is docs/reference/runner-protocol.md."""
