import type { FindOutcome } from '../../core/activities'
import { defined } from '../../core/defined'
import type { MachineHandle, OwnedResource, ResourceHandle } from '../../core/handle'
import { spendOver } from '../../core/money/meter'
import type { Observation } from '../../core/observation'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { DAY_MS, formatInstant } from '../../core/time/time'
import type { CallContext, FindContext, LogPage } from '../backend'
import type { Job, Listed } from './documents'
import { orderTokenOf } from '../../core/queues'
import { assertOfAttempt } from '../errors'
import { invalid, launchFailure } from './errors'
import type { Host } from './host'
import { BACKEND } from './offers'

/** Modal's exit codes for its own ends (`modal/sandbox/_common.py` of 1.6); 0 does not prove success. */
const TIMED_OUT = 124
const TERMINATED = 137

const CALLS_AT_ONCE = 16

/** Names of our tags; the gateway adds `key`, `owner` and `accepted-at-ms`. */
const TAGS = { job: 'job', type: 'type', price: 'price' } as const

export function tagsOf({ jobId }: Order, { type, priceMicroUsdPerHour }: Offer): Record<string, string> {
  return { [TAGS.job]: jobId, [TAGS.type]: type, [TAGS.price]: String(priceMicroUsdPerHour) }
}

/** Returns the handle of a job's machine, the same each time it is found. */
export function handleOf(
  host: Pick<Host, 'deps'>,
  { key, tags, accepted_at_ms: acceptedAtMs }: Job,
  offer?: Pick<Offer, 'type' | 'priceMicroUsdPerHour'>,
): MachineHandle {
  return {
    backend: BACKEND,
    kind: 'machine',
    id: key,
    attemptId: attemptOf(host, key),
    realised: {
      capacityType: 'on-demand',
      place: '',
      type: tags[TAGS.type] ?? offer?.type ?? '',
      priceMicroUsdPerHour: Number(tags[TAGS.price] ?? offer?.priceMicroUsdPerHour ?? 0),
    },
    launchedAtMs: acceptedAtMs ?? 0,
  }
}

/** The attempt of a key of this deployment: its token, or in 0.1.0 its id. */
function attemptOf({ deps: { deployment } }: Pick<Host, 'deps'>, key: string): string {
  const ending = deployment === undefined ? '' : orderTokenOf('', deployment)
  return ending !== '' && key.endsWith(ending) ? key.slice(0, -ending.length) : key
}

/** The keys under which this deployment may have ordered an attempt. */
function keysOf({ deps: { deployment } }: Host, attemptId: string): string[] {
  return deployment === undefined ? [attemptId] : [orderTokenOf(attemptId, deployment), attemptId]
}

/** Whether a job is not another deployment's: the gateway knows no owner of a key that was only cancelled. */
function isOurs({ deps: { deployment } }: Host, { owner }: Pick<Job, 'owner'>): boolean {
  return deployment === undefined || owner === undefined || owner === null || owner === deployment
}

/** Phases of a job that has no machine and will get none. A job in a phase that this release does not know may have one. */
const FINAL = ['ended', 'cancelled', 'launch_failed', 'launch_lost']

/** Whether a job has a machine, or may still get one. */
export const isOpen = ({ phase }: Job): boolean => !FINAL.includes(phase)

const hasMachine = ({ sandbox_id: id }: Job): boolean => typeof id === 'string'

/** Finds the machine of an attempt. For a key that the gateway does not know, it asks Modal. */
export async function find(host: Host, attemptId: string, ctx: FindContext): Promise<FindOutcome> {
  const job = await jobOf(host, attemptId, ctx.signal)
  const waitMs = (ctx.sentUntilMs ?? 0) - host.deps.clock()
  if (job === undefined) return waitMs > 0 ? { kind: 'unsettled', againInMs: waitMs } : { kind: 'absent' }
  if (isOpen(job)) return { kind: 'found', handles: [handleOf(host, job)] }
  return { kind: 'absent', ended: hasMachine(job) ? [handleOf(host, job)] : undefined }
}

/** The job that this deployment ordered for an attempt. */
async function jobOf(host: Host, attemptId: string, signal: AbortSignal): Promise<Job | undefined> {
  for (const key of keysOf(host, attemptId)) {
    const job = await host.api.job(key, signal)
    if (job !== undefined && isOurs(host, job)) return job
  }
  return undefined
}

export async function observe(
  { api }: Host,
  handles: MachineHandle[],
  { signal }: CallContext,
): Promise<(Observation | undefined)[]> {
  const answers: PromiseSettledResult<Job | undefined>[] = []
  for (let from = 0; from < handles.length; from += CALLS_AT_ONCE) {
    const some = handles.slice(from, from + CALLS_AT_ONCE)
    answers.push(...(await Promise.allSettled(some.map(({ id }) => api.job(id, signal)))))
  }
  // A job that Modal fails to answer for must not hide the others.
  const failed = answers.find((answer) => answer.status === 'rejected')
  if (failed !== undefined && answers.every(({ status }) => status === 'rejected')) throw failed.reason
  return answers.map((answer) => (answer.status === 'fulfilled' ? observationOf(answer.value) : undefined))
}

/**
 * Returns the observation of a job from the gateway's answer; undefined if neither it nor Modal knows the key.
 * @internal A test goes over every answer of the gateway.
 */
export function observationOf(job: Job | undefined): Observation {
  if (job === undefined)
    return { state: 'gone', cause: 'unknown', detail: 'unknown to Modal and to the gateway' }
  const { phase, error, exit_code: exitCode } = job
  const billed = defined({ billedFromAtMs: job.running_at_ms ?? undefined })
  const ended = defined({ endedAtMs: job.ended_at_ms ?? undefined })
  switch (phase) {
    case 'launching':
      return { state: 'queued', detail: 'waiting for Modal' }
    case 'running':
      return { state: 'running', ...billed }
    case 'ended':
      return { state: 'gone', ...causeOf(exitCode ?? undefined), ...billed, ...ended }
    case 'cancelled':
      return { state: 'gone', cause: 'ended', detail: 'terminated', ...billed, ...ended }
    case 'launch_failed': {
      const failure = error === null || error === undefined ? undefined : launchFailure(error)
      const isOurs = failure !== undefined && failure.class !== 'capacity'
      return {
        state: 'gone',
        cause: 'failed-to-start',
        detail: failure?.message ?? 'the launch failed',
        failure: isOurs ? failure : undefined,
        ...ended,
      }
    }
    case 'launch_lost':
      return { state: 'gone', cause: 'failed-to-start', detail: 'Modal ended the launch before it finished' }
    default:
      // The phase is of a later gateway, so nothing is concluded from it.
      return { state: 'running', detail: `phase ${phase}`, ...billed }
  }
}

function causeOf(exitCode: number | undefined): Pick<Observation, 'cause' | 'detail'> {
  if (exitCode === TIMED_OUT) return { cause: 'ended', detail: 'reached its time limit at Modal (124)' }
  // Crucible did not end it: then the gateway would report it as cancelled.
  if (exitCode === TERMINATED) return { cause: 'interrupted', detail: 'interrupted by Modal (137)' }
  return { cause: 'ended', detail: `exit code ${exitCode ?? 'unknown'}` }
}

export async function terminate(
  host: Host,
  resource: ResourceHandle,
  { signal }: CallContext,
): Promise<void> {
  const { api } = host
  const { kind, id } = resource
  if (kind === 'volume') return api.deleteVolume(id, signal)
  // Without its deployment's id, no attempt can be read from a key.
  assertOfAttempt(resource, host.deps.deployment === undefined ? '' : attemptOf(host, id))
  // A key with the deployment's name is ours; one of 0.1.0 may be another deployment's.
  const job = attemptOf(host, id) === id ? await api.job(id, signal) : undefined
  if (job !== undefined && !isOurs(host, job))
    throw invalid(
      `machine ${id} belongs to deployment ${job.owner}`,
      'Give each deployment jobs with other ids, or a gateway.',
    )
  await api.cancel(id, signal)
}

/** Everything that Modal lists with the deployment's tag. */
export async function list(
  host: Host,
  deployment: string,
  { signal }: CallContext,
): Promise<OwnedResource[]> {
  return (await host.api.jobs(deployment, signal)).map((listed) => resourceOf(host, listed, deployment))
}

function resourceOf({ deps }: Host, { key, tags }: Listed, deployment: string): OwnedResource {
  const acceptedAtMs = Number(tags['accepted-at-ms'] ?? 0)
  const handle = handleOf(
    { deps: { ...deps, deployment } },
    { key, phase: 'running', tags, accepted_at_ms: acceptedAtMs },
  )
  const { type, priceMicroUsdPerHour } = handle.realised
  return {
    handle,
    owner: { deployment, jobId: tags[TAGS.job] ?? '', attemptId: handle.attemptId },
    createdAtMs: acceptedAtMs,
    description: `${type} machine, ordered ${formatInstant(acceptedAtMs)}`,
    costMicroUsdPerDay: spendOver(DAY_MS, priceMicroUsdPerHour),
  }
}

/** Returns the container's output, and Modal's reason if it never started. */
export async function logs({ api }: Host, { id }: MachineHandle, { signal }: CallContext): Promise<LogPage> {
  const lines = await api.logs(id, signal)
  const lastWords = lines.findLast((line) => line.trim() !== '')
  return { text: lines.map((line) => `${line}\n`).join(''), lastWords }
}
