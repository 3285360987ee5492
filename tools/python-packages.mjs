// Installs the packages that build and check the Python packages of bindings/python, and run their notebook, at the versions of
// python-packages.txt. Without them these tests are skipped, with a message.
import { getPythonClients } from './python-clients.mjs'

/** Returns the environment's folder, created when missing; `undefined`, with a message, when that fails. */
export function getPythonPackages(home, say) {
  return getPythonClients({ name: 'python-packages', what: 'the tools of the Python packages' }, home, say)
}
