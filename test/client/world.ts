import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Client } from '@temporalio/client'
import type { ClientConfig } from '../../client/config'
import { Context } from '../../client/context'
import { CrucibleError } from '../../client/errors'
import type { Settlement } from '../../core/activities'
import type { Beat, LogLine } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { EMPTY_LEDGER, type Decision } from '../../core/job/ledger'
import type { JobInput, JobStatus } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { offerKey, type Offer } from '../../core/offer'
import type { RecordKind } from '../../core/job/record'
import { layout } from '../../storage/layout'
import { putRecord } from '../../storage/record'
import { makeMarkedFolder } from '../support/marked-store'
import { SPEC } from '../support/spec'
import { partialEntry } from '../support/record'

export { SPEC }

export const NOW = Date.UTC(2026, 10, 21, 12)
export const JOB = 'job-0123456789'

export const OFFER: Offer = {
  backend: 'local',
  capacityType: 'spot',
  type: 'process',
  place: 'here',
  shape: { cpus: 2, memoryGiB: 4, gpus: 0 },
  priceMicroUsdPerHour: microUsd(3.6),
  priceSource: { kind: 'configured', observedAtMs: NOW },
  availability: 'available',
}

/** A client's context on a store of its own in a temporary folder, with a server that a test plays. */
export class ClientWorld {
  readonly context: Context
  nowMs = NOW
  /** Plays the server; without one none answers. */
  client: Partial<Client> | undefined

  private constructor(
    readonly folder: string,
    environment: Record<string, string>,
  ) {
    const config: ClientConfig = {
      home: {
        directory: folder,
        storeUrl: pathToFileURL(join(folder, 'store')).href,
        secretKeyFile: join(folder, 'secret.key'),
      },
      temporal: { connection: { address: 'localhost:1' }, namespace: 'default' },
      temporalUiUrl: 'http://ui',
      owner: 'somebody',
      environment,
    }
    this.context = new Context(config, () => this.nowMs)
    this.context.temporal = () =>
      this.client === undefined
        ? Promise.reject(new CrucibleError('unavailable', 'No Temporal server answers.'))
        : Promise.resolve(this.client as Client)
  }

  static async make(environment: Record<string, string> = {}): Promise<ClientWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'crucible-client-'))
    makeMarkedFolder(join(folder, 'store'))
    return new ClientWorld(folder, environment)
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }

  get store(): Context['store'] {
    return this.context.store
  }

  private seq = 0

  /** The next entry of the job's record. */
  async record(kind: RecordKind, data: unknown, attempt?: number): Promise<void> {
    const entry = { seq: this.seq++, atMs: this.nowMs, kind, summary: kind, data }
    await putRecord(this.store, JOB, partialEntry(attempt === undefined ? entry : { ...entry, attempt }))
  }

  submitted(input: Partial<JobInput> = {}): Promise<void> {
    return this.record('submitted', {
      jobId: JOB,
      spec: SPEC,
      bundle: null,
      owner: 'somebody',
      deployment: 'dep-0',
      submittedAtMs: NOW,
      ...input,
    } satisfies JobInput)
  }

  /** An attempt was placed; what was spent before, and the pause before its order, are in the plan's own inputs. */
  planned(attempt: number, spentMicroUsd = 0, startsInMs?: number): Promise<void> {
    const order = {
      attemptId: `${JOB}-${attempt}`,
      jobId: JOB,
      attempt,
      backend: OFFER.backend,
      capacityType: OFFER.capacityType,
      offers: [OFFER],
    }
    const outcome = { kind: 'place', order, words: { summary: 'there', reasons: ['it is cheap'] } }
    return this.record(
      'planned',
      { inputs: { ledger: { ...EMPTY_LEDGER, spentMicroUsd }, startsInMs }, outcome },
      attempt,
    )
  }

  settled(attempt: number, settlement: Partial<Settlement> = {}): Promise<void> {
    const whole: Settlement = {
      end: { kind: 'succeeded' },
      handle: machineOf(attempt),
      endedAtMs: this.nowMs,
      costMicroUsd: 1_000,
      artifacts: [],
      phases: [],
      ...settlement,
    }
    return this.record('settled', whole, attempt)
  }

  decided(attempt: number, decision: Decision): Promise<void> {
    return this.record('decided', { verdict: { decision, ledger: EMPTY_LEDGER } }, attempt)
  }

  finished(status: JobStatus): Promise<void> {
    const { id, state, reason, message } = status
    const result = {
      id,
      state,
      reason,
      message,
      attempts: 1,
      costMicroUsd: 1,
      artifacts: [],
      finishedAtMs: this.nowMs,
    }
    return this.record('finished', { status, result })
  }

  async machine(attempt: number): Promise<void> {
    await this.store.put(layout.machine(JOB, attempt), JSON.stringify(machineOf(attempt)))
  }

  async beat(attempt: number, beat: Partial<Beat> = {}): Promise<void> {
    await this.store.put(layout.beat(JOB, attempt), JSON.stringify(beatOf(attempt, beat)))
  }

  /** The attempt writes no more. */
  async result(attempt: number): Promise<void> {
    await this.store.put(layout.result(JOB, attempt), '{}')
  }

  /** A chunk with the lines of these numbers, under the name of a wider range where one is given. */
  async chunk(
    attempt: number,
    numbers: number[],
    [from, to] = [numbers[0]!, numbers.at(-1)!],
  ): Promise<void> {
    const lines = numbers.map((n): LogLine => ({ n, t: NOW + n, s: 'out', m: `${attempt}.${n}` }))
    const name = [from, to].map((n) => String(n).padStart(12, '0')).join('-')
    await this.store.put(
      `${layout.logs(JOB, attempt)}${name}.ndjson`,
      lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    )
  }
}

export function machineOf(attempt: number): MachineHandle {
  const { capacityType, type, place, priceMicroUsdPerHour } = OFFER
  return {
    backend: OFFER.backend,
    kind: 'machine',
    id: `machine-${attempt}`,
    attemptId: `${JOB}-${attempt}`,
    realised: { capacityType, type, place, priceMicroUsdPerHour },
    launchedAtMs: NOW,
  }
}

export function beatOf(attempt: number, beat: Partial<Beat> = {}): Beat {
  return {
    attemptId: `${JOB}-${attempt}`,
    seq: 1,
    phase: 'running',
    progress: null,
    gpus: [],
    checkpoint: null,
    restoredFrom: null,
    limitsSeq: 0,
    leaseSeq: 0,
    logLines: 0,
    clockMs: NOW,
    uptimeMs: 0,
    ...beat,
  }
}

/** The search attributes of a workflow without any. */
export const NO_ATTRIBUTES = { typedSearchAttributes: { get: () => undefined } }

export function statusOf(status: Partial<JobStatus> = {}): JobStatus {
  return {
    id: JOB,
    name: 'train',
    owner: 'somebody',
    state: 'running',
    reason: 'training',
    message: 'Training.',
    submittedAtMs: NOW,
    spentMicroUsd: 0,
    attempts: [
      {
        number: 1,
        attemptId: `${JOB}-1`,
        workflowId: `job/${JOB}/1`,
        backend: 'local',
        capacityType: 'spot',
        offerKey: offerKey(OFFER),
        state: 'running',
        reason: 'training',
        costMicroUsd: 0,
      },
    ],
    attemptsTotal: 1,
    placementReasons: [],
    ...status,
  }
}
