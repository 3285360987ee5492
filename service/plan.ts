import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { answerOf } from '../activities/plan/asking'
import { createInputSizes } from '../activities/plan/input-sizes'
import { previewWithRelaxations } from '../activities/plan/planning'
import type { JobSpec } from '../core/job/job'
import type { PlanReport } from '../core/job/plan'
import type { SavedBefore } from '../core/job/saving'
import { makeDeploymentId } from '../core/ids'
import { readDeployment } from '../storage/deployment'
import type { Environment, Home } from '../storage/home'
import { isNotOurs } from '../storage/mark'
import { openStore } from '../storage/open-store'
import { readDeploymentKey } from '../storage/secrets'
import type { ObjectStore } from '../storage/store'
import { INPUT_MEASURERS } from './input-measurers'
import { readWorkerConfig, type WorkerConfig } from './config'
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
  return withStore(config.home, (store, deployment) =>
    planWith(config, { store, deployment }, { spec, owner, savedBefore, explain }),
  )
}

type Asked = Parameters<typeof previewWithRelaxations>[1]

async function planWith(
  config: WorkerConfig,
  { store, deployment }: { store: ObjectStore; deployment: string },
  asked: Asked,
): Promise<PlanReport> {
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
    asked,
  )
}

/**
 * The store, which a plan only reads. A home without a key was never used and has no store yet: an empty folder stands in for it. Throws a
 * `StoreError` if the store of a used home is away.
 */
async function withStore<T>(
  home: Home,
  use: (store: ObjectStore, deployment: string) => Promise<T>,
): Promise<T> {
  const store = openStore(home.storeUrl)
  try {
    return await use(store, (await readDeployment(store)) ?? makeDeploymentId(randomInt))
  } catch (error) {
    if (!isNotOurs(error) || (await readDeploymentKey(home.secretKeyFile)) !== undefined) throw error
  }
  const folder = await mkdtemp(join(tmpdir(), 'crucible-plan-'))
  try {
    return await use(openStore(pathToFileURL(folder).href), makeDeploymentId(randomInt))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
