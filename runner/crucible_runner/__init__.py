"""The runner: the program on the machine. Its interface to the rest of Crucible is docs/runner-protocol.md."""
