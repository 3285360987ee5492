import { describe, expect, it } from '@jest/globals'
import { joinView, type JobFacts } from '../../../client/job/view'
import type { Beat } from '../../../core/documents'
import { NO_FORECAST } from '../../../core/job/forecast'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { beatOf, JOB, machineOf, NOW, SPEC, statusOf } from '../world'

function facts(given: Partial<JobFacts> = {}): JobFacts {
  return {
    status: statusOf(),
    spec: SPEC,
    newest: { attempt: 1, beat: undefined, machine: machineOf(1) },
    endedAtMs: undefined,
    nowMs: NOW + HOUR_MS,
    isLive: true,
    checkpoints: [],
    recoveries: [],
    uiUrl: undefined,
    ...given,
  }
}

const progress = (step: number, stepsTotal: number | null = 100) => ({ step, stepsTotal, loss: 2, atMs: NOW })

describe('a job joined from workflow, record and beat', () => {
  it('shows what was requested and what it got', () => {
    const machine = machineOf(1)
    machine.realised = { ...machine.realised, capacityType: 'on-demand', type: 'other' }
    const { placement, attempts } = joinView(facts({ newest: { attempt: 1, beat: undefined, machine } }))
    expect(placement).toMatchObject({
      capacityType: 'spot',
      realised: { capacityType: 'on-demand', type: 'other' },
    })
    expect(attempts[0]).toMatchObject({
      capacityType: 'spot',
      realised: { capacityType: 'on-demand' },
      place: 'here',
    })
  })

  it('says its place in the line with any message while it waits for a machine, and only then', () => {
    const waiters = ['job-older', JOB].map((jobId, index) => ({
      jobId,
      sinceMs: NOW + index,
      wish: 'w',
      backends: ['local'],
    }))
    const line = 'Queue: waiting, 2nd for local. Older jobs with equal requests go first.'
    const spec = { ...SPEC, backends: [{ backend: 'local' }] }
    const waiting = { state: 'pending', reason: 'waiting-for-capacity' } as const
    const seen = (given: object) => {
      const { message, waiting: place } = joinView(
        facts({ status: statusOf({ ...waiting, attempts: [], ...given }), spec, waiters, newest: undefined }),
      )
      return { message, position: place?.position }
    }
    expect(seen({ message: '0 of 1 slots free.' })).toEqual({
      message: `0 of 1 slots free. ${line}`,
      position: 2,
    })
    expect(seen({ message: 'Queue: waiting, 7th for local.' })).toEqual({ message: line, position: 2 })
    expect(seen({ reason: 'quota', message: 'No quota.' })).toEqual({
      message: 'No quota.',
      position: undefined,
    })
  })

  it('says how to continue a job that ended before it was done', () => {
    const checkpoints = [{ id: '000000000040-2', step: 40, attempt: 2 }]
    const failed = statusOf({ state: 'failed', reason: 'workload-failed' })
    const go = { command: `crucible submit --from ${JOB}`, step: 40 }
    expect(joinView(facts({ status: failed, checkpoints })).continuation).toEqual(go)
    const fresh = { command: `crucible submit --from ${JOB} --fresh`, step: null }
    expect(joinView(facts({ status: failed })).continuation).toEqual(fresh)
    expect(joinView(facts({ checkpoints })).continuation).toBeNull()
    const done = statusOf({ state: 'succeeded', reason: 'completed' })
    expect(joinView(facts({ status: done, checkpoints })).continuation).toBeNull()
  })

  it('counts what the running machine has cost so far on top of what ended ones cost', () => {
    const status = statusOf({ spentMicroUsd: 1_000_000, budgetMicroUsd: 9_000_000 })
    // $3.60 for the hour since it was launched.
    expect(joinView(facts({ status })).cost).toEqual({
      spentMicroUsd: 1_000_000 + 3_600_000,
      estimatedRemainingMicroUsd: null,
      remainingBasis: null,
      budgetMicroUsd: 9_000_000,
    })
  })

  it.each([
    ['this computer, workers and machine 30 d ahead', 30 * DAY_MS],
    ['this computer and the machine 2 h back', -2 * HOUR_MS],
  ])('counts it by its own time with the clock of %s', (_, byMs) => {
    const phases = [{ name: 'starting' as const, startedAtMs: machineOf(1).launchedAtMs, durationMs: 0 }]
    const times = { uptimeMs: HOUR_MS, phases, clockMs: NOW + byMs }
    const newest = { attempt: 1, beat: beatOf(1, times), machine: machineOf(1) }
    const { cost } = joinView(facts({ newest, nowMs: NOW + byMs }))
    expect(cost.spentMicroUsd).toBe(3_600_000)
  })

  it('estimates what is left by the pace since the first step', () => {
    const restoredFrom = { id: 'x', step: 40, attempt: 1 }
    const since = { firstStep: 40, firstStepAtMs: NOW - 20 * MINUTE_MS }
    const beat = beatOf(1, { progress: progress(60), restoredFrom, ...since, uptimeMs: 9 * HOUR_MS })
    const newest = { attempt: 1, beat, machine: machineOf(1) }
    // 20 steps in 20 minutes, 40 to go, at 6 cents a minute.
    const { cost, progress: shown } = joinView(facts({ newest, nowMs: NOW }))
    expect(cost).toMatchObject({ estimatedRemainingMicroUsd: 40 * 60_000, remainingBasis: 'pace' })
    expect(shown).toMatchObject({ step: 60, stepsTotal: 100, loss: 2, percent: 60 })
  })

  it('never shows the running number of a checkpoint as a step', () => {
    const restoredFrom = { id: 'x', step: 40, attempt: 1, isStepKnown: false }
    const phases = [{ name: 'running' as const, startedAtMs: NOW - HOUR_MS, durationMs: HOUR_MS }]
    const beat = beatOf(1, { progress: progress(60), restoredFrom, phases })
    const { cost } = joinView(facts({ newest: { attempt: 1, beat, machine: machineOf(1) } }))
    expect(cost.estimatedRemainingMicroUsd).toBeNull()
  })

  it('has the state of the newest checkpoint, why the attempt began where it did, and its warning', () => {
    const checkpoint = { id: '000000000003-1', step: 3, attempt: 1, isStepKnown: false }
    const warning = { kind: 'no-checkpoint', text: 'No complete checkpoint for 20 min.', sinceMs: NOW }
    const told = { checkpointState: 'quiet', restoredBecause: 'newest complete checkpoint', warning } as const
    const newest = { attempt: 1, beat: beatOf(1, { checkpoint, ...told }), machine: undefined }
    const listed = { id: checkpoint.id, step: 3, attempt: 1 }
    expect(joinView(facts({ newest, checkpoints: [listed] }))).toMatchObject({
      checkpoints: { newest: checkpoint, state: 'quiet', count: 1 },
      warning,
      attempts: [told],
    })
    const newer = { id: '000000000004-1', step: 4, attempt: 1 }
    expect(joinView(facts({ newest, checkpoints: [newer, listed] })).checkpoints).toEqual({
      newest: newer,
      state: null,
      count: 2,
    })
  })

  it('keeps the warnings of missing outputs, of what was left out and of a hidden failure at the end, and no other', () => {
    const [first] = statusOf().attempts
    const warningOf = (kind: string): unknown => {
      const warning = { kind, text: 'Outputs are missing.', sinceMs: NOW }
      const attempts = [{ ...first!, state: 'succeeded' as const, endedAtMs: NOW, warning }]
      return joinView(facts({ status: statusOf({ state: 'succeeded', attempts }) })).warning
    }
    expect(warningOf('missing-outputs')).toMatchObject({ text: 'Outputs are missing.' })
    expect(warningOf('hidden-failure')).toMatchObject({ kind: 'hidden-failure' })
    expect(warningOf('left-out')).toMatchObject({ kind: 'left-out' })
    expect(warningOf('no-checkpoint')).toBeNull()
  })

  it('has the runs at trackers of the newest attempt that knows any', () => {
    const [first] = statusOf().attempts
    const trackers = [{ kind: 'wandb', runId: 'abc', url: 'https://wandb.ai/lab/x/runs/abc' }]
    const status = statusOf({
      attempts: [
        { ...first!, endedAtMs: NOW, trackers },
        { ...first!, number: 2 },
      ],
    })
    const seen = (beat: Beat | undefined) =>
      joinView(facts({ status, newest: { attempt: 2, beat, machine: machineOf(2) } }))
    expect(seen(undefined)).toMatchObject({ trackers, attempts: [{ trackers }, { trackers: [] }] })
    const both = [...trackers, { kind: 'wandb', runId: 'def' }]
    expect(seen(beatOf(2, { trackers: both }))).toMatchObject({ trackers: both })
    expect(joinView(facts({})).trackers).toEqual([])
  })

  it('estimates by the forecast of the plan while there are no steps, unless it has proved too low', () => {
    const [attempt] = statusOf().attempts
    const expected = { costMicroUsd: 10_800_000, durationMs: 3 * HOUR_MS, forecast: NO_FORECAST }
    const status = statusOf({ attempts: [{ ...attempt!, expected }] })
    const beat = beatOf(1, { firstStepAtMs: NOW })
    const newest = { attempt: 1, beat, machine: machineOf(1) }
    const costAt = (hours: number) => joinView(facts({ status, newest, nowMs: NOW + hours * HOUR_MS })).cost
    expect(costAt(1)).toMatchObject({ estimatedRemainingMicroUsd: 7_200_000, remainingBasis: 'forecast' })
    expect(costAt(9)).toMatchObject({ estimatedRemainingMicroUsd: null, remainingBasis: null })
    const assumed = statusOf({
      attempts: [{ ...attempt!, expected: { ...expected, isDurationAssumed: true } }],
    })
    expect(joinView(facts({ status: assumed, newest })).cost.remainingBasis).toBe('assumed')
  })

  it('says that nothing is left to pay where the machine is free', () => {
    const machine = machineOf(1)
    machine.realised = { ...machine.realised, priceMicroUsdPerHour: 0 }
    const { cost } = joinView(facts({ newest: { attempt: 1, beat: undefined, machine } }))
    expect(cost).toMatchObject({ spentMicroUsd: 0, estimatedRemainingMicroUsd: 0 })
  })

  it('estimates nothing for a job that is over', () => {
    const status = statusOf({ state: 'failed', reason: 'workload-failed' })
    expect(
      joinView(facts({ status, spec: { ...SPEC, durationMs: HOUR_MS } })).cost.estimatedRemainingMicroUsd,
    ).toBeNull()
  })

  it('believes the runner that its workload runs before the job knows it', () => {
    const [attempt] = statusOf().attempts
    const starting = { ...attempt!, state: 'provisioning', reason: 'launching' } as const
    const status = statusOf({ state: 'provisioning', reason: 'launching', attempts: [starting] })
    const seen = (phase: 'setup' | 'running' | 'draining') =>
      joinView(facts({ status, newest: { attempt: 1, beat: beatOf(1, { phase }), machine: undefined } }))
    expect(seen('setup')).toMatchObject({
      state: 'provisioning',
      attempts: [{ state: 'provisioning', reason: 'starting' }],
    })
    expect(seen('running')).toMatchObject({
      state: 'running',
      reason: 'training',
      attempts: [{ state: 'running' }],
    })
    expect(seen('draining')).toMatchObject({
      state: 'running',
      reason: 'saving',
      phase: 'draining',
      attempts: [{ state: 'stopping', reason: 'saving' }],
    })
  })

  it('asks the attempt how far it has come: the job knows only that it is under way', () => {
    const [attempt] = statusOf().attempts
    const starting = { ...attempt!, state: 'provisioning', reason: 'launching' } as const
    const underWay = { reason: 'under-way', message: 'Attempt 1 is under way.' } as const
    const status = statusOf({ ...underWay, attempts: [starting] })
    const seen = (beat: Beat | undefined, own = status) =>
      joinView(facts({ status: own, newest: { attempt: 1, beat, machine: machineOf(1) } }))
    expect(seen(undefined)).toMatchObject({
      state: 'provisioning',
      reason: 'launching',
      message: 'The machine was launched and has not reported yet.',
    })
    const launching = { state: 'provisioning', reason: 'launching', message: 'Getting a machine.' } as const
    expect(seen(undefined, { ...status, ...launching }).message).toContain('has not reported yet')
    const unlaunched = { attempt: 1, beat: undefined, machine: undefined }
    expect(joinView(facts({ status, newest: unlaunched })).message).toBe('Getting a machine.')
    expect(seen(beatOf(1, { phase: 'fetching' }))).toMatchObject({
      state: 'provisioning',
      message: 'The machine downloads code and inputs.',
    })
    expect(seen(beatOf(1))).toMatchObject({ state: 'running', reason: 'training', message: 'Training.' })
    const finishing = {
      state: 'running',
      reason: 'finishing',
      phase: 'finishing',
      message: 'The program has ended, and its files are being kept.',
    }
    expect(seen(beatOf(1, { phase: 'finishing' }))).toMatchObject(finishing)
    // Also where the record of the job says that it trains.
    const training = { ...status, state: 'running', reason: 'training', message: 'Training.' } as const
    expect(seen(beatOf(1, { phase: 'finishing' }), training)).toMatchObject(finishing)
    const phases = [{ name: 'fetching' as const, startedAtMs: NOW, durationMs: 1 }]
    expect(seen(beatOf(1, { phase: 'finishing', phases })).message).toContain(
      'without having run the program',
    )
    expect(seen(beatOf(1, { phase: 'draining' }))).toMatchObject({ state: 'running' })
    const pause = { reason: 'interrupted', message: 'Attempt 2 waits.' } as const
    expect(seen(undefined, { ...status, ...pause })).toMatchObject({ state: 'provisioning', ...pause })
    // A store that does not answer makes no running job one that starts.
    expect(joinView(facts({ status, newest: undefined }))).toMatchObject({
      state: 'running',
      ...underWay,
      attempts: [{ state: 'running', reason: 'under-way' }],
    })
  })

  it('tells what the machine tries again, as part of its present activity', () => {
    const [attempt] = statusOf().attempts
    const starting = { ...attempt!, state: 'provisioning', reason: 'launching' } as const
    const status = statusOf({ reason: 'under-way', attempts: [starting] })
    const retrying = { text: 'fetching the bundle does not work: 503 SlowDown', sinceMs: NOW - 12_000 }
    const seen = (beat: Partial<Beat>) =>
      joinView(facts({ status, newest: { attempt: 1, beat: beatOf(1, beat), machine: machineOf(1) } }))
    expect(seen({ phase: 'fetching', retrying })).toMatchObject({
      message: `The machine downloads code and inputs. Trying again: ${retrying.text}.`,
      retrying,
      attempts: [{ retrying }],
    })
    expect(seen({ phase: 'finishing', retrying }).message).toMatch(/being kept\. Trying again: /)
    expect(seen({ phase: 'running', retrying }).message).toBe(`Training. Trying again: ${retrying.text}.`)
    expect(seen({ phase: 'fetching' }).retrying).toBeNull()
  })

  it('keeps the progress of the previous attempt until the new one reports some', () => {
    const [first] = statusOf().attempts
    const status = statusOf({
      attempts: [
        { ...first!, state: 'interrupted', endedAtMs: NOW, progress: progress(30) },
        { ...first!, number: 2, state: 'provisioning' },
      ],
      attemptsTotal: 2,
    })
    const newest = { attempt: 2, beat: beatOf(2), machine: undefined }
    expect(joinView(facts({ status, newest })).progress).toMatchObject({ step: 30, percent: 30 })
  })

  it('lets no late beat change an attempt that is over', () => {
    const [attempt] = statusOf().attempts
    const ended = {
      ...attempt!,
      state: 'interrupted',
      endedAtMs: NOW,
      costMicroUsd: 7,
      progress: progress(30),
    } as const
    const status = statusOf({ attempts: [ended], spentMicroUsd: 7 })
    const view = joinView(
      facts({
        status,
        newest: { attempt: 1, beat: beatOf(1, { progress: progress(99) }), machine: machineOf(1) },
      }),
    )
    expect(view.attempts[0]).toMatchObject({
      state: 'interrupted',
      costMicroUsd: 7,
      progress: { step: 30 },
      phase: null,
    })
    expect(view.cost.spentMicroUsd).toBe(7)
  })

  it('shows no share of an unknown total', () => {
    const beat = beatOf(1, { progress: progress(5, null) })
    expect(joinView(facts({ newest: { attempt: 1, beat, machine: undefined } })).progress).toEqual({
      step: 5,
      stepsTotal: null,
      loss: 2,
      percent: null,
      epoch: null,
      epochsTotal: null,
      batch: null,
      batchesTotal: null,
    })
  })

  it('shows epochs without steps, and what is left by their part of the whole', () => {
    const told = { ...progress(0, null), step: null, epoch: 2, epochsTotal: 4, percent: 25 }
    const phases = [
      { name: 'running' as const, startedAtMs: NOW - 20 * MINUTE_MS, durationMs: 20 * MINUTE_MS },
    ]
    const beat = beatOf(1, { progress: told, restoredFrom: null, phases, uptimeMs: 9 * HOUR_MS })
    const newest = { attempt: 1, beat, machine: machineOf(1) }
    const { cost, progress: shown } = joinView(facts({ newest, nowMs: NOW }))
    expect(shown).toMatchObject({ step: null, epoch: 2, epochsTotal: 4, percent: 25 })
    const hour = machineOf(1).realised.priceMicroUsdPerHour
    expect(cost.estimatedRemainingMicroUsd).toBe(hour)
  })

  it('never shows steps lost of an attempt that did its work, whatever an old record says', () => {
    const [first] = statusOf().attempts
    const lostBy = (state: 'succeeded' | 'failed') => {
      const status = statusOf({ attempts: [{ ...first!, state, endedAtMs: NOW, stepsLost: 60 }] })
      return joinView(facts({ status, newest: undefined })).attempts[0]!.stepsLost
    }
    expect([lostBy('succeeded'), lostBy('failed')]).toEqual([0, 60])
  })

  it('has every field, null where nothing is known, so that programs need not ask', () => {
    const status = statusOf({ state: 'pending', reason: 'submitted', attempts: [], attemptsTotal: 0 })
    expect(joinView(facts({ status, newest: undefined, spec: undefined }))).toEqual({
      id: JOB,
      name: 'train',
      isRehearsal: false,
      owner: 'somebody',
      workflowId: `job/${JOB}`,
      state: 'pending',
      reason: 'submitted',
      message: 'Training.',
      submittedAtMs: NOW,
      endedAtMs: null,
      progress: null,
      cost: {
        spentMicroUsd: 0,
        estimatedRemainingMicroUsd: null,
        remainingBasis: null,
        budgetMicroUsd: null,
      },
      deadlineAtMs: null,
      trouble: null,
      waiting: null,
      queuedSinceMs: null,
      phase: null,
      retrying: null,
      placement: null,
      attemptsTotal: 0,
      isLive: true,
      checkpoints: { newest: null, state: null, count: 0 },
      warning: null,
      incomplete: null,
      attempts: [],
      trackers: [],
      recoveries: [],
      placementReasons: [],
      uiUrl: null,
      continuation: null,
    })
  })
})
