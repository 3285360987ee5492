import { BACKENDS, findCredentials } from '../../backends/registry'
import { SECOND_MS } from '../../core/time/time'
import { deploymentOfStore } from '../../client/checks'
import { makeBackend } from '../../service/make-backend'
import type { Patient } from './doctor'
import { ok, warning, type CheckFinding } from '../kit/findings'

/** Reports where credentials were found. The check of a backend reports missing or refused ones. */
export async function checkCredentials({
  config,
  environment,
}: Pick<Patient, 'config' | 'environment'>): Promise<CheckFinding[]> {
  return [...config.backends.keys()].flatMap((name) => {
    const source = BACKENDS[name]?.credentials?.(environment)
    const found = source && findCredentials(source, environment)
    if (found === undefined) return []
    const { description, problem } = found
    const told = ok(`${name}: ${description}`)
    return problem === undefined ? [told] : [told, warning(`${name}: ${problem.message}`, problem.remedy)]
  })
}

export async function checkBackends({
  context,
  config,
  isStoreWell,
}: Pick<Patient, 'context' | 'config'> & { isStoreWell: boolean }): Promise<CheckFinding[]> {
  const deployment = isStoreWell ? ((await deploymentOfStore(context)) ?? '') : ''
  const told = [...config.backends.keys()].map(async (name): Promise<CheckFinding[]> => {
    const backend = await makeBackend(config, name, {
      store: context.store,
      deployment,
      isStoreUnwell: !isStoreWell,
    })
    const problems = await backend.check({ signal: AbortSignal.timeout(30 * SECOND_MS) })
    if (problems.length === 0) return [ok(`${name} is ready`)]
    return problems.map(({ severity, message, remedy }) => ({
      status: severity,
      message: `${name}: ${message}`,
      remedy,
    }))
  })
  return (await Promise.all(told)).flat()
}
