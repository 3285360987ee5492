/** Plans a job through a worker before it is submitted, and refuses one that could not run. */
import type { JobReason, JobSpec } from '../../core/job/job'
import type { PlanReport, SilentBackend } from '../../core/job/plan'
import { ruledOutInWords } from '../../core/job/ruled-out'
import { signInEndInWords } from '../../core/offer'
import { backendQueue } from '../../core/queues'
import { SHARED_USER, SHARED_USER_REMEDY } from '../../core/shared-user'
import { layout } from '../../storage/layout'
import type { Context } from '../context'
import { CrucibleError, toCrucibleError } from '../errors'
import { pollersOf } from '../workers'
import { planThroughWorkers } from './plan'
import { savedBefore } from './saved'

/** The obstacle of an account's quota, which a person can raise. */
export const QUOTA: JobReason = 'quota'

export interface Expectation {
  /** Missing if no worker answers: nothing is known then. */
  plan?: PlanReport
  /** Sentences about everything that will delay the job. */
  warnings: string[]
}

/**
 * Asks a worker where a job would run now. Throws `capacity` for a job that would end at once because no offer can run it, and
 * `unavailable` for one that only backends without a worker could run. `allowed`: obstacles that may be gone when the job starts.
 */
export async function expectPlace(
  context: Context,
  { spec, from, allowed = [] }: { spec: JobSpec; from?: string | undefined; allowed?: readonly JobReason[] },
): Promise<Expectation> {
  const plan = await planOf(context, spec, from)
  context.clock.check()
  if (plan === undefined) return { warnings: [] }
  if (plan.prospect.kind === 'never') {
    if (!allowed.includes(plan.prospect.reason)) throw impossible(plan, plan.prospect)
    return { plan, warnings: [plan.prospect.message] }
  }
  const warnings = [
    ...absentInWords(plan, spec),
    ...(await sharedInWords(context, plan, spec)),
    ...signInWarnings(plan, context.clock.now()),
  ]
  if (plan.prospect.kind !== 'wait') return { plan, warnings }
  await checkServed(context, plan)
  return { plan, warnings: [...warnings, `The job will wait. ${plan.prospect.reason}`] }
}

async function planOf(
  context: Context,
  spec: JobSpec,
  from: string | undefined,
): Promise<PlanReport | undefined> {
  try {
    return await planThroughWorkers(context, spec, { before: await savedBefore(context, spec, from) })
  } catch (error) {
    const known = toCrucibleError(error)
    if (known.kind === 'unavailable') return undefined
    throw known
  }
}

function impossible(
  { rejections, relaxations }: PlanReport,
  { message, hint }: { message: string; hint?: string },
): CrucibleError {
  const why = ruledOutInWords(rejections)
  const changes = relaxations.map(({ sentence }) => `${sentence}.`)
  return new CrucibleError(
    'capacity',
    why.length === 0 ? message : ['No offer can run this job:', ...why.map((one) => `  ${one}.`)].join('\n'),
    { hint: changes.length === 0 ? hint : changes.join('\n') },
  )
}

/** Warns of backends that the job names and the deployment does not have, if it has another one of the job. */
export function absentInWords({ absentBackends: absent = [] }: PlanReport, { backends }: JobSpec): string[] {
  if (absent.length === 0) return []
  const others = [...new Set(backends.map(({ backend }) => backend))].filter((name) => !absent.includes(name))
  if (others.length === 0) return []
  return [
    `This deployment has no backend ${absent.join(', ')}, so the job can only use ${others.join(', ')}. See \`crucible doctor\`.`,
  ]
}

/** Tells the first submitter of a deployment that a job can read the others there. */
async function sharedInWords(context: Context, plan: PlanReport, { image }: JobSpec): Promise<string[]> {
  const isShared = plan.placements.some(({ offer }) => offer.sharesUser === true)
  if (!isShared || image !== undefined) return []
  // A store that refuses is reported by the submission itself.
  const isFirst = await context.store.putIfAbsent(layout.sharedUserNotice(), '{}').catch(() => false)
  return isFirst ? [`${SHARED_USER} ${SHARED_USER_REMEDY}`] : []
}

/** Warns of a sign-in that ends before the job is likely to. */
function signInWarnings({ placements: [best] }: PlanReport, nowMs: number): string[] {
  const words = best && signInEndInWords(best.offer, { durationMs: best.durationMs, nowMs })
  return words === undefined ? [] : [`${words.charAt(0).toUpperCase()}${words.slice(1)}.`]
}

/** A busy worker answers later; a backend without a worker never does. */
async function checkServed(context: Context, { silentBackends, rejections }: PlanReport): Promise<void> {
  if (silentBackends.length === 0 || rejections.some(({ why }) => why === 'unavailable')) return
  const isServed = await Promise.all(silentBackends.map((silent) => hasWorker(context, silent)))
  if (isServed.includes(true)) return
  const names = [...new Set(silentBackends.map(({ backend }) => backend))]
  const others = rejections.length === 0 ? '' : ' Every offer of the other backends is excluded.'
  throw new CrucibleError('unavailable', `No worker serves ${names.join(', ')}.${others}`, {
    hint: `Start one: \`crucible worker ${names[0]}\`.`,
  })
}

/** True for a backend that is silent in some places only, and if the server does not report its workers. */
async function hasWorker(context: Context, { backend, place }: SilentBackend): Promise<boolean> {
  if (place !== undefined) return true
  return pollersOf(context, backendQueue(backend), 'activity').then(
    (count) => count > 0,
    () => true,
  )
}
