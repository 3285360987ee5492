// A client of Lambda Cloud that others generated from its published OpenAPI document, at the version of lambda-clients.txt: it verifies the
// small cloud's Lambda and the Lambda backend. Without it these tests are skipped, with a message.
import { getPythonClients } from './python-clients.mjs'

/** Returns the environment's folder, created when missing; `undefined`, with a message, when that fails. */
export function getLambdaClients(home, say) {
  return getPythonClients({ name: 'lambda-clients', what: 'a client of Lambda Cloud' }, home, say)
}
