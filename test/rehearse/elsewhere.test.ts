import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Beat, RunnerResult } from '../../core/documents'
import type { Host, Machine, Part } from '../../rehearse/host'
import { rehearse } from '../../rehearse/rehearsal'
import type { RehearsalFacts } from '../../rehearse/seen'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import type { ObjectStore } from '../../storage/store'
import { patient } from '../support/patience'

const FACTS = { limitsSeq: 0, leaseSeq: 0, logLines: 0, clockMs: 0, uptimeMs: 1_000, gpus: [] }

/** What becomes of an attempt: `trains` until it is struck, `lost` while it trains, `nothing` before its runner has spoken. */
type Fate = 'trains' | 'lost' | 'nothing' | 'succeeds'

/** A provider whose machines do as the test says, seen through the store only. */
class Elsewhere implements Host {
  readonly sight = 'store'
  readonly pace = { pollMs: 5, listMs: 20, goneMs: 5 }
  readonly log: string[] = []
  private readonly gone = new Set<string>()

  constructor(
    readonly store: ObjectStore,
    private readonly fates: Record<Part, Fate[]>,
  ) {}

  begin(part: Part): Promise<string> {
    this.log.push(`begin ${part}`)
    return Promise.resolve(`job-${part}`)
  }

  async next(jobId: string, before: number): Promise<Machine | undefined> {
    const attempt = before + 1
    const fate = this.fates[jobId.replace('job-', '') as Part][before]
    if (fate === undefined) return undefined
    this.log.push(`machine ${attempt}`)
    const about = { attemptId: `${jobId}-${attempt}`, checkpoint: null, restoredFrom: null }
    // The provider is quicker than the rehearsal with a machine that is lost.
    const sinceMs = fate === 'lost' ? 0 : 60_000
    const progress = { step: 1, stepsTotal: null, loss: null, atMs: Date.now() - sinceMs }
    if (fate === 'trains' || fate === 'lost')
      await putDocument(this.store, layout.beat(jobId, attempt), {
        ...FACTS,
        ...about,
        seq: 1,
        phase: 'running',
        progress,
      } satisfies Beat)
    if (fate === 'succeeds')
      await putDocument(this.store, layout.result(jobId, attempt), {
        ...about,
        version: 1,
        outcome: 'succeeded',
        reason: 'completed',
        message: 'Done.',
        exitCode: 0,
        signal: null,
        progress: null,
        artifacts: [],
        phases: [],
        logLines: 0,
        finishedAtMs: 1,
      } satisfies RunnerResult)
    if (fate !== 'trains') this.gone.add(about.attemptId)
    return { jobId, attempt }
  }

  strike({ jobId, attempt }: Machine, noticeMs: number | null): Promise<void> {
    this.log.push(`strike ${attempt} ${noticeMs === null ? 'without notice' : 'with notice'}`)
    this.gone.add(`${jobId}-${attempt}`)
    return Promise.resolve()
  }

  stop({ jobId, attempt }: Machine): Promise<void> {
    this.log.push(`stop ${attempt}`)
    this.gone.add(`${jobId}-${attempt}`)
    return Promise.resolve()
  }

  isGone({ jobId, attempt }: Machine): Promise<boolean> {
    return Promise.resolve(this.gone.has(`${jobId}-${attempt}`))
  }

  clear(): Promise<void> {
    return Promise.resolve()
  }

  end(jobId: string): Promise<void> {
    this.log.push(`end ${jobId}`)
    return Promise.resolve()
  }
}

let folder: string
let store: ObjectStore

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible-elsewhere-'))
  store = openStore(pathToFileURL(folder).href, Date.now)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function rehearsed(host: Host, signal = AbortSignal.timeout(patient(30_000))): Promise<RehearsalFacts> {
  const options = { host, directory: null, forMs: 600_000, interruptions: 1, now: Date.now, signal }
  return rehearse({ ...options, say: () => undefined })
}

describe('a rehearsal of jobs elsewhere', () => {
  it('passes over machines that came to nothing, and counts those that the provider takes back', async () => {
    const host = new Elsewhere(store, {
      undisturbed: ['nothing', 'succeeds'],
      interrupted: ['nothing', 'lost', 'trains', 'nothing', 'succeeds'],
    })
    const { undisturbed, interrupted, sight } = await rehearsed(host)
    expect(sight).toBe('store')
    expect(undisturbed.attempts.map(({ number }) => number)).toEqual([2])
    expect(interrupted.attempts).toMatchObject([
      { number: 2, strike: { manner: 'kill', isAtMoment: false } },
      { number: 3, strike: { manner: 'kill' } },
      { number: 5, strike: null, end: { outcome: 'succeeded' } },
    ])
    expect(host.log.filter((line) => line.startsWith('strike'))).toEqual(['strike 3 without notice'])
    expect(host.log.filter((line) => line.startsWith('end'))).toEqual([
      'end job-undisturbed',
      'end job-interrupted',
    ])
  })

  it('judges what it has seen when the job gets no other machine', async () => {
    const host = new Elsewhere(store, { undisturbed: ['succeeds'], interrupted: ['trains'] })
    const { interrupted } = await rehearsed(host)
    expect(interrupted.attempts).toHaveLength(1)
    expect(host.log.at(-1)).toBe('end job-interrupted')
  })

  it('ends the running job on request', async () => {
    const host = new Elsewhere(store, { undisturbed: ['trains'], interrupted: [] })
    await expect(rehearsed(host, AbortSignal.timeout(100))).rejects.toThrow()
    expect(host.log).toEqual(['begin undisturbed', 'machine 1', 'end job-undisturbed'])
  })
})
