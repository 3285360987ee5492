import { checkpointId } from '../core/job/checkpoint'
import { monthOfCosts, type JobCosts } from '../core/money/job-costs'

/** The latest possible instant; indexes by time count down from it. */
const LATEST_MS = 999_999_999_999_999

const newestFirst = (atMs: number): string => String(LATEST_MS - atMs).padStart(15, '0')

/** The keys of the object store; docs/reference/runner-protocol.md describes design and protocol. Every document has exactly one writer. */
export const layout = {
  /** `{id}`: the deployment that owns this store. The first worker or client puts it once. */
  deployment: () => 'deployment.json',
  /** Empty: a submitter has been told that jobs of this deployment can read each other. */
  sharedUserNotice: () => 'shared-user-notice.json',
  /** `{check}`: identifies the deployment's key without revealing it. The first worker or client puts it once. */
  deploymentKey: () => 'deployment-key.json',
  /** The runner program, content-addressed, so that a running job keeps the version that it was started with. */
  runner: (sha256: string) => `runners/${sha256}.pyz`,
  /**
   * Offers and prices as a backend answered them, under their digest, without the instants of the reading; and, next to each, an empty
   * object for every job whose record uses it (`storage/market.ts`).
   */
  markets: () => 'market/',
  market: (backend: string, sha256: string) => `market/${backend}/${sha256}.json`,
  marketUse: (backend: string, sha256: string, jobId: string) => `market/${backend}/${sha256}/${jobId}`,

  /**
   * Every place that was ever scanned for machines of a backend, so that resources in a place that is no longer scanned can be reported.
   */
  places: (backend: string) => `places/${backend}/`,
  place: (backend: string, place: string) => `places/${backend}/${place}.json`,

  /** Empty objects, one for each job, newest first: a store lists keys in their order. */
  submissions: () => 'submissions/',
  submission: (submittedAtMs: number, jobId: string) => `submissions/${newestFirst(submittedAtMs)}-${jobId}`,
  /** Speeds of jobs on several accelerator types, newest first (`storage/own-speeds.ts`). Each is put once, when its job ends. */
  allOwnSpeeds: () => 'own-speeds/',
  ownSpeeds: (finishedAtMs: number, jobId: string) => `own-speeds/${newestFirst(finishedAtMs)}-${jobId}.json`,
  /** The GPU memory that attempts used, newest first (`storage/own-memory.ts`). Put once, when an attempt is settled. */
  allOwnMemory: () => 'own-memory/',
  ownMemory: (atMs: number, { jobId, attempt }: { jobId: string; attempt: number }) =>
    `own-memory/${newestFirst(atMs)}-${jobId}-${attempt}.json`,
  /** Costs of jobs that are over, by month (`storage/job-costs.ts`). Each is put once, when its job ends. */
  costs: (month?: string) => (month === undefined ? 'costs/' : `costs/${month}/`),
  jobCosts: (costs: JobCosts) => `costs/${monthOfCosts(costs)}/${costs.jobId}.json`,
  /** Jobs that wait for machines, by age, and the job of each request that may order now; docs/reference/waiting.md. */
  waiting: () => 'waiting/',
  /** Launch times of a backend whose account limits launches per minute (`storage/launch-turns.ts`). */
  launches: (backend: string) => `launches/${backend}/`,
  launch: (backend: string, seq: number) => `launches/${backend}/${String(seq).padStart(12, '0')}.json`,

  /**
   * Documents that machines read once at their start, one for each send (docs/decisions/0041-hand-over.md). They are outside the job's
   * folder: no grant allows reading them, and a list of this folder is short.
   */
  handOvers: () => 'hand-overs/',
  handOversOf: (jobId: string, attempt: number) => `hand-overs/${jobId}/${attempt}/`,
  handOver: (jobId: string, attempt: number, send: string) => `hand-overs/${jobId}/${attempt}/${send}.sealed`,

  /** State of each request for reserved capacity (`storage/reservations.ts`). */
  reservations: () => 'reservations/',
  reservation: (id: string) => `reservations/${id}/`,
  reservationRecords: (id: string) => `reservations/${id}/record/`,
  reservationRecord: (id: string, seq: number) =>
    `reservations/${id}/record/${String(seq).padStart(6, '0')}.json`,
  /** Webhook of a reservation, sealed with the deployment's key (`storage/webhooks.ts`). */
  reservationWebhook: (id: string) => `reservations/${id}/webhook.sealed`,
  /** Documents about a purchase, put before it is sent and once its effect is certain (`storage/purchases.ts`). */
  purchase: (id: string, send: number) =>
    `reservations/${id}/purchases/${String(send).padStart(6, '0')}.json`,
  purchaseEffect: (id: string, send: number) =>
    `reservations/${id}/purchases/${String(send).padStart(6, '0')}-effect.json`,
  /** Holder of a reservation's capacity, put once. */
  reservationHolder: (id: string) => `reservations/${id}/holder.json`,
  /** The request that an owned reservation serves, put once so that it serves only one. */
  reservationClaims: (backend: string) => `reservation-claims/${backend}/`,
  reservationClaim: (backend: string, ownedId: string) => `reservation-claims/${backend}/${ownedId}.json`,

  /** Schedules of retraining: each version of a file with its code and secrets, and the record of each run. */
  schedules: () => 'schedules/',
  scheduleRevisions: (name: string) => `schedules/${name}/revisions/`,
  scheduleRevision: (name: string, revision: number) =>
    `schedules/${name}/revisions/${String(revision).padStart(6, '0')}.json`,
  scheduleBundle: (name: string, sha256: string) => `schedules/${name}/bundle/${sha256}.tar.gz`,
  /** Secrets of a schedule, sealed with the deployment's key; those of the newest revision count. */
  scheduleSecrets: (name: string, revision: number) => `schedules/${name}/secrets/${revision}.sealed`,
  /** What its owner has allowed beyond the calendar, and what runs have used up (`storage/schedule-permits.ts`). */
  schedulePermits: (name: string) => `schedules/${name}/permits/`,
  schedulePermit: (name: string, id: string) => `schedules/${name}/permits/${id}.json`,
  scheduleUse: (name: string, what: string) => `schedules/${name}/uses/${what}.json`,
  schedulePauses: (name: string) => `schedules/${name}/pauses/`,
  schedulePause: (name: string, atMs: number) =>
    `schedules/${name}/pauses/${String(atMs).padStart(15, '0')}.json`,
  scheduleRuns: (name: string) => `schedules/${name}/runs/`,
  runRecord: (name: string, run: string, seq: number) =>
    `schedules/${name}/runs/${run}/${String(seq).padStart(6, '0')}.json`,
  /** The chain of models that were put into production under a name: each is put once, and the highest number counts. */
  models: (model: string) => `models/${model}/versions/`,
  model: (model: string, seq: number) => `models/${model}/versions/${String(seq).padStart(6, '0')}.json`,
  /** Which run promotes, one at a time: the highest number counts. */
  promotionClaims: (model: string) => `models/${model}/claims/`,
  promotionClaim: (model: string, number: number) =>
    `models/${model}/claims/${String(number).padStart(6, '0')}.json`,
  /** A copy of the highest one, for programs that serve the model. */
  production: (model: string) => `models/${model}/production.json`,

  jobs: () => 'jobs/',
  job: (jobId: string) => `jobs/${jobId}/`,
  records: (jobId: string) => `jobs/${jobId}/record/`,
  record: (jobId: string, seq: number) => `jobs/${jobId}/record/${String(seq).padStart(6, '0')}.json`,
  bundles: (jobId: string) => `jobs/${jobId}/bundle/`,
  bundle: (jobId: string, sha256: string) => `jobs/${jobId}/bundle/${sha256}.tar.gz`,
  /** The job's secrets, sealed with the deployment's key; deleted when the job ends. */
  secrets: (jobId: string) => `jobs/${jobId}/secrets.sealed`,

  attempts: (jobId: string) => `jobs/${jobId}/attempts/`,
  attempt: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/`,
  order: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/order.json`,
  /** Handle of the machine, put as soon as it is known. */
  machine: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/machine.json`,
  /** Since when the machine is billed, if its provider may queue it. */
  billing: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/billing.json`,
  /** Machines of the attempt that were ended outside of its settlement, or whose provider does not report when they ended. */
  endedMachines: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/ended/`,
  endedMachine: (jobId: string, attempt: number, id: string) =>
    `jobs/${jobId}/attempts/${attempt}/ended/${encodeURIComponent(id)}.json`,
  /** Sends of an order to a provider that does not recognize repeated orders (`storage/sends.ts`). */
  sends: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/sends/`,
  send: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/sends/${String(seq).padStart(6, '0')}.json`,
  sendOutcome: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/sends/${String(seq).padStart(6, '0')}-outcome.json`,
  /** The machine that works on the attempt: if a provider has made two, the second does nothing. */
  claim: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/claim.json`,
  lease: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/lease.json`,
  limits: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/limits/${String(seq).padStart(6, '0')}.json`,
  drain: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/drain.json`,
  /** Shorter windows for a drain that has begun. */
  shorterDrains: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/drains/`,
  shorterDrain: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/drains/${String(seq).padStart(6, '0')}.json`,
  beat: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/beat.json`,
  /** The checkpoints that the attempt was restored from, and the outcomes. */
  restores: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/restores.json`,
  result: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/result.json`,
  attemptSecrets: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/secrets.sealed`,
  /** Diagnosis of a machine with a silent runner, collected before its end. */
  diagnosis: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/diagnosis.json`,
  /** Why a machine started no runner, in its own words. */
  lastWords: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/last-words.txt`,
  logs: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/logs/`,

  checkpoints: (jobId: string) => `jobs/${jobId}/checkpoints/`,
  checkpoint: (jobId: string, step: number, attempt: number) =>
    `jobs/${jobId}/checkpoints/${checkpointId(step, attempt)}/`,
  /** The artifacts of one attempt. */
  outputs: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/outputs.json`,
  artifactsOf: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/artifacts/`,
} as const

/** Returns the name of a checkpoint's manifest under the checkpoint's folder. Each revision is put once and never changed. */
export function manifestName(revision = 1): string {
  return revision === 1 ? 'manifest.json' : `manifest.${revision}.json`
}

/** Returns the revision in the name of a manifest; `undefined` for another name. */
export function parseManifestName(name: string): number | undefined {
  const match = /^manifest(?:\.([1-9]\d{0,8}))?\.json$/.exec(name)
  if (match === null) return undefined
  const revision = Number(match[1] ?? 1)
  return manifestName(revision) === name ? revision : undefined
}

/** Under a checkpoint's folder, the files that were uploaded with a revision of its manifest, by their relative paths. */
export function filesFolder(revision = 1): string {
  return revision === 1 ? 'files/' : `files.${revision}/`
}
