import { describe, expect, it } from '@jest/globals'
import { paidFor } from '../support/money'
import { until } from '../support/until'
import { COUNTER, STUBBORN } from './programs'
import { machineProcesses, useWorlds, type Machine, type Wanted, type World } from './world'
import { patient } from '../support/patience'
import { itInAll } from '../support/selection'

const createWorld = useWorlds()
const NONE = { seq: 0, deadlineAtMs: null, budget: null }
/** Short windows, so that a limit of seconds has room for them. */
const BRISK = { drainMs: 1_500, powerOffMs: 500 }

async function launchCounter(world: World, wanted: Wanted): Promise<Machine> {
  const bundle = await world.bundle({ 'counter.py': COUNTER })
  return world.launch({ bundle, run: 'python3 counter.py 10000 0.05 1000', ...BRISK, ...wanted })
}

describe('the hard stop', () => {
  it('by the deadline is kept with everything saved before it', async () => {
    const world = createWorld()
    const deadlineAtMs = Date.now() + patient(8_000)
    const machine = await launchCounter(world, { limits: { ...NONE, deadlineAtMs } })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'deadline', exitCode: 143 })
    expect(result.checkpoint).not.toBeNull()
    expect(Date.now()).toBeLessThan(deadlineAtMs)
    const draining = result.phases.find(({ name }) => name === 'draining')!
    expect(draining.startedAtMs).toBeGreaterThanOrEqual(deadlineAtMs - 2_000)
  })

  it('by the money ends a command that does not listen', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN })
    const startedAtMs = Date.now()
    const machine = await world.launch({
      ...BRISK,
      bundle,
      run: 'python3 stubborn.py',
      limits: { ...NONE, budget: paidFor(patient(8_000)) },
    })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'budget', signal: 'SIGKILL' })
    expect(Date.now() - startedAtMs).toBeGreaterThan(7_000)
    expect(machineProcesses(machine.id)).toEqual([])
  })

  it('by the money counts from the order, so that neither a slow launch nor another start gives more', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'stubborn.py': STUBBORN })
    const issuedAtMs = Date.now() - 20_000
    // Room for two starts on a busy computer.
    const limits = { ...NONE, budget: paidFor(20_000 + patient(12_000)) }
    const run = 'python3 stubborn.py'
    const first = await world.launch({ ...BRISK, bundle, issuedAtMs, limits, run })
    await first.untilBeat(({ progress, uptimeMs }) => progress !== null && uptimeMs > 2_000)
    process.kill(first.runner(), 'SIGKILL')
    await first.exited
    const second = world.start({ root: first.root })
    expect(await second.end()).toMatchObject({ outcome: 'stopped', reason: 'budget', signal: 'SIGKILL' })
    const ranMs = Date.now() - issuedAtMs
    expect(ranMs).toBeGreaterThan(30_000)
    expect(ranMs).toBeLessThan(20_000 + patient(18_000))
  })

  itInAll('that is too near leaves the command unstarted', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, { limits: { ...NONE, budget: paidFor(1_000) } })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'budget' })
    expect(await machine.output()).toEqual([])
  })

  it('moves when the limits are extended; the highest number counts', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, { limits: { ...NONE, budget: paidFor(patient(8_000)) } })
    await machine.untilBeat(({ progress }) => progress !== null)
    await world.limits(1, { ...NONE, seq: 2, budget: paidFor(60_000) })
    await machine.untilBeat(({ limitsSeq }) => limitsSeq === 2)
    await world.limits(1, { ...NONE, seq: 1, budget: paidFor(0) })
    await machine.untilBeat(({ uptimeMs }) => uptimeMs > 8_500)
    await world.limits(1, { ...NONE, seq: 3, budget: paidFor(9_000) })
    expect(await machine.end()).toMatchObject({ outcome: 'stopped', reason: 'budget' })
  })
})

describe('the lease', () => {
  it('lapses without a renewal: the command saves and the machine ends on its own', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, { leaseMs: 2_000 })
    const result = await machine.end()
    expect(result).toMatchObject({ outcome: 'stopped', reason: 'lease', exitCode: 143 })
    expect(result.checkpoint).not.toBeNull()
    const starting = result.phases[0]!.startedAtMs
    const draining = result.phases.find(({ name }) => name === 'draining')!.startedAtMs
    expect(draining - starting).toBeGreaterThan(1_800)
    expect(draining - starting).toBeLessThan(patient(4_000))
  })

  it('is renewed by answers to beats, counted from the time when the beat was sent', async () => {
    const world = createWorld()
    const machine = await launchCounter(world, { leaseMs: 2_000 })
    let seq = 0
    let answered = 0
    await until(async () => {
      const beat = await machine.beat()
      if (beat !== undefined && beat.seq > answered) {
        answered = beat.seq
        await world.lease(1, { seq: ++seq, answersBeat: beat.seq, ttlMs: 2_000 })
      }
      return (beat?.uptimeMs ?? 0) > 5_000
    })
    expect(await machine.result()).toBeUndefined()
    expect((await machine.beat())!.leaseSeq).toBeGreaterThan(0)
    const unanswered = Date.now()
    const result = await machine.end()
    expect(result).toMatchObject({ reason: 'lease' })
    const draining = result.phases.find(({ name }) => name === 'draining')!.startedAtMs
    expect(draining - unanswered).toBeLessThan(patient(4_000))
  })
})
