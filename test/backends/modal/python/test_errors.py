"""Errors of Modal's client, and of the network below it, as the gateway reports them."""

import socket
import unittest

import memory_runtime  # noqa: F401 (finds the gateway)
import modal

from crucible_gateway.on_modal import errors
from crucible_gateway.runtime import RuntimeFailure


class ErrorsTest(unittest.TestCase):
    def reported(self, error: Exception) -> RuntimeFailure:
        with self.assertRaises(RuntimeFailure) as caught, errors:
            raise error
        return caught.exception

    def test_exceptions_of_the_client_keep_their_names(self):
        failure = self.reported(modal.exception.ConflictError("aborted"))
        self.assertEqual((failure.type, failure.message), ("ConflictError", "aborted"))

    def test_trouble_of_the_network_has_one_name(self):
        for error in (socket.gaierror(-3, "no answer"), ConnectionResetError(104, "reset"), TimeoutError("slow")):
            failure = self.reported(error)
            self.assertEqual((failure.type, failure.message), ("ConnectionError", "%s: %s" % (type(error).__name__, error)))
