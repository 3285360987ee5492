import type { CallContext, Problem } from '../backend'
import { tokenInWords } from './config'
import { modalError, TOKEN_REFUSED } from './errors'
import type { Host } from './host'
import { missingIn, versionProblem } from './policy'

/** Checks for obstacles to machines. The limits of a workspace are not checked, because Modal lets work wait instead. */
export async function check({ api, config }: Host, { signal }: CallContext): Promise<Problem[]> {
  try {
    const health = await api.health(signal)
    const failure = versionProblem(health)
    if (failure !== undefined)
      return [{ severity: 'error', message: failure.message, remedy: failure.hint!, failure: failure.class }]
    await api.rates(signal)
    const missing = missingIn(health, { secrets: [...new Set(Object.values(config.imageSecrets))] })
    return missing.map((name) => ({
      severity: 'warning',
      message: `The gateway does not allow the Modal Secret ${name}: images that need it cannot be pulled.`,
      remedy: 'Run `crucible setup modal`.',
    }))
  } catch (error) {
    const thrown = modalError(error)
    if (signal.aborted) throw thrown
    const { class: failure, code, hint = 'Run `crucible setup modal`.' } = thrown.failure
    const message =
      code === TOKEN_REFUSED ? `Modal refused ${tokenInWords(config.token.key)}.` : thrown.failure.message
    return [{ severity: 'error', message, remedy: hint, failure }]
  }
}
