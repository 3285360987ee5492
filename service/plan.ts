import { answerOf } from '../activities/plan/asking'
import { createInputSizes } from '../activities/plan/input-sizes'
import { previewWithRelaxations } from '../activities/plan/planning'
import type { JobSpec } from '../core/job/job'
import type { PlanReport } from '../core/job/plan'
import type { SavedBefore } from '../core/job/saving'
import type { Environment } from '../storage/home'
import { openStore } from '../storage/open-store'
import { INPUT_MEASURERS } from './input-measurers'
import { readWorkerConfig } from './config'
import { deploymentOf } from './deployment'
import { makeBackend } from './make-backend'

/** Time limit of a request, the same as in a backend's worker. */
const ANSWER_LIMIT_MS = 20_000

/** Ranks offers for a job with the orchestrator's own activity code, asking the backends in this process. */
export async function planHere(
  environment: Environment,
  spec: JobSpec,
  {
    owner,
    before: savedBefore,
    explain,
  }: { owner?: string; before?: SavedBefore | undefined; explain?: string | undefined } = {},
): Promise<PlanReport> {
  const config = readWorkerConfig(environment)
  const store = openStore(config.home.storeUrl)
  const deployment = await deploymentOf(store)
  return previewWithRelaxations(
    {
      store,
      backends: [...config.backends.keys()],
      now: Date.now,
      inputSizes: createInputSizes({ measurers: INPUT_MEASURERS, monotonicMs: () => performance.now() }),
      timing: config.timing,
      askOffers: async (name, request, { image, signal } = {}) => {
        const backend = await makeBackend(config, name, { store, deployment })
        const limit = AbortSignal.timeout(ANSWER_LIMIT_MS)
        const within = signal === undefined ? limit : AbortSignal.any([limit, signal])
        return answerOf(backend, { request, image }, within)
      },
    },
    { spec, owner, savedBefore, explain },
  )
}
