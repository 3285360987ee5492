// Installs Modal's own client and the gateway's server at the versions of modal-clients.txt, for tests that run the gateway of
// backends/modal/gateway under them. Without them these tests are skipped, with a message.
import { getPythonClients } from './python-clients.mjs'

/** Returns the environment's folder, created when missing; `undefined`, with a message, when that fails. */
export function getModalClients(home, say) {
  return getPythonClients({ name: 'modal-clients', what: "Modal's client" }, home, say)
}
