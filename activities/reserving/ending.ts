import { parseAttemptId } from '../../core/queues'
import { isTrainingOf } from '../../core/retraining/run'
import { leftTimeOf } from '../../core/job/remaining'
import type { ExtensionLook, JobInReservation, LookForExtensionTask } from '../../core/reservation/activities'
import { overrunsOf } from '../../planner/reserving/extend'
import { readRecords } from '../../storage/record'
import type { AttemptKey } from '../../storage/machines'
import { AttemptDocuments } from '../documents'
import { reservingOf, type ReservingDeps } from './deps'

/** Returns the jobs in a reservation for which it may be extended, and the extensions for sale if one of them will not be done in time. */
export async function lookForExtension(
  deps: ReservingDeps,
  { reservation, deployment, rule }: LookForExtensionTask,
  signal: AbortSignal,
): Promise<ExtensionLook> {
  const { backend, now } = deps
  const resources = await backend.list(deployment, { signal })
  const { extendFor } = rule
  const attempts = resources
    .filter(({ owner, handle }) => owner.deployment === deployment && handle.kind === 'machine')
    .flatMap(({ owner }) => parseAttemptId(owner.attemptId) ?? [])
    .filter(({ jobId }) => extendFor === undefined || isTrainingOf(extendFor.trainings, jobId))
  const found = await Promise.all(attempts.map((at) => jobIn(deps, reservation.id, at)))
  const jobs = found.filter((job) => job !== undefined)
  const nowMs = now()
  const needMs = Math.max(0, ...overrunsOf(reservation, jobs, nowMs).map(({ overMs }) => overMs))
  if (needMs === 0) return { jobs, quotes: [], nowMs }
  const { id, region, kind, type, total } = reservation
  const wish = { backend: backend.name, kind, types: [type], count: total, durationMs: needMs }
  const quotes = await reservingOf(deps).reservable({ ...wish, extends: { id, region } }, { signal })
  return { jobs, quotes, nowMs }
}

/** Returns a job in the reservation; undefined if its machine is not there. */
async function jobIn(
  { store, now }: ReservingDeps,
  reservation: string,
  at: AttemptKey,
): Promise<JobInReservation | undefined> {
  const documents = new AttemptDocuments(store, at, now)
  const machine = await documents.readMachine()
  if (machine?.realised.reservationId !== reservation) return undefined
  const [beat, records] = await Promise.all([documents.readBeat(), readRecords(store, at.jobId)])
  const launch = records.find((entry) => entry.kind === 'launched' && entry.attempt === at.attempt)
  const order = launch?.kind === 'launched' ? launch.data : undefined
  const inIt = order?.offers.find(({ reservationId }) => reservationId === reservation)
  const facts = { expected: order?.expected, launchedAtMs: machine.launchedAtMs, beat, nowMs: now() }
  return { ...at, left: leftTimeOf(facts), accelerator: inIt?.shape.accelerator }
}
