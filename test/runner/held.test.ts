import { describe, expect, it } from '@jest/globals'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Beat } from '../../core/documents'
import { setTimeout as sleep } from 'node:timers/promises'
import { paidFor } from '../support/money'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'
import { until } from '../support/until'
import { machineProcesses, useWorlds, type Machine, type Wanted, type World } from './world'

/** Its environment says which part is held, and for how long. */
const createWorld = useWorlds(join(__dirname, 'held-runner.py'))

const GAP_MAX_MS = 2_000
const HELD_MS = chosen([60_000], [4_000])[0]!
const START_MS = patient(6_000)
const BRISK = { drainMs: 1_500, powerOffMs: 1_000, beatMs: 200 }

/** Each part of the runner that works on a job's data, with a job that makes it work. */
const PARTS: Record<string, Wanted> = {
  logs: { run: 'echo step 1; exec sleep 600' },
  'logs of setup': { setup: 'echo preparing; exec sleep 600' },
  progress: { run: 'echo step 1; exec sleep 600' },
  scan: { run: 'echo step 1; exec sleep 600' },
  upload: { run: 'echo 1 > "$CRUCIBLE_CHECKPOINT_DIR/step-1.txt"; exec sleep 600' },
  artifacts: { run: 'echo 1 > "$CRUCIBLE_OUTPUT_DIR/result.txt"' },
}

function createHolding(part: string, seconds: number, at: number): World {
  const world = createWorld(undefined, `held-${at}-${process.pid}`)
  world.environment['CRUCIBLE_TEST_HELD'] = part.split(' ')[0]
  world.environment['CRUCIBLE_TEST_HOLD_SECONDS'] = String(seconds)
  return world
}

async function untilHeld(machine: Machine): Promise<void> {
  await until(() => existsSync(join(machine.root, 'held')))
}

/** Every beat until the machine has ended. */
async function beatsOf(machine: Machine): Promise<Beat[]> {
  const beats: Beat[] = []
  const isOver = machine.exited.then(() => true)
  while (!(await Promise.race([isOver, sleep(50)]))) {
    const beat = await machine.beat()
    if (beat !== undefined && beat.seq !== beats.at(-1)?.seq) beats.push(beat)
  }
  return beats
}

describe('a runner that cannot read the artifacts', () => {
  it('gives the result without them, and says so', async () => {
    const world = createWorld()
    world.environment['CRUCIBLE_TEST_HELD'] = 'artifacts'
    const machine = await world.launch(PARTS['artifacts']!)
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded', artifacts: [] })
    expect(await machine.remarks()).toMatch(/artifacts cannot be read: out of order/)
  })
})

describe('a runner whose work on a job’s data does not return', () => {
  it(
    'sends beats that say so, and is ended at the hard stop, whichever part it is',
    async () => {
      const ran = Object.entries(PARTS).map(async ([part, wanted], at) => {
        const world = createHolding(part, 3_600, at)
        const paidMs = START_MS + HELD_MS
        const limits = { seq: 0, deadlineAtMs: null, budget: paidFor(paidMs) }
        const issuedAtMs = Date.now()
        const machine = await world.launch({ ...BRISK, limits, issuedAtMs, ...wanted })
        await untilHeld(machine)
        const heldMs = Date.now() - issuedAtMs
        const beats = await beatsOf(machine)
        const endedMs = Date.now() - issuedAtMs
        const times = [...beats.map(({ clockMs }) => clockMs - issuedAtMs), endedMs]
        const gaps = times.slice(1).map((time, before) => time - times[before]!)
        return {
          part,
          isHeldLongEnough: endedMs - heldMs > HELD_MS - BRISK.drainMs - BRISK.powerOffMs,
          gapMs: Math.max(...gaps),
          hasSaidSo: (beats.at(-1)?.stalledSinceMs ?? Infinity) <= issuedAtMs + heldMs + GAP_MAX_MS,
          lateMs: endedMs - paidMs,
          hasResult: (await machine.result()) !== undefined,
          left: machineProcesses(machine.id),
        }
      })
      for (const end of await Promise.all(ran)) {
        expect(end).toMatchObject({ isHeldLongEnough: true, hasSaidSo: true, hasResult: false, left: [] })
        expect(end.gapMs).toBeLessThan(patient(GAP_MAX_MS))
        expect(end.lateMs).toBeLessThan(patient(1_000))
      }
    },
    HELD_MS + 60_000,
  )

  it.each(['runner', 'timekeeper'] as const)('ends at the hard stop when the %s is frozen', async (part) => {
    const world = createHolding('none', 0, Object.keys(PARTS).length)
    // A runner counts as silent after five seconds, which begin a second after the last answer at the latest.
    const paidMs = patient(9_000)
    const issuedAtMs = Date.now()
    const limits = { seq: 0, deadlineAtMs: null, budget: paidFor(paidMs) }
    const machine = await world.launch({ ...BRISK, limits, issuedAtMs, run: 'echo step 1; exec sleep 600' })
    await machine.untilBeat(({ progress }) => progress !== null)
    process.kill(machine[part](), 'SIGSTOP')
    await machine.exited
    const lateMs = Date.now() - issuedAtMs - paidMs
    expect(lateMs).toBeLessThan(part === 'runner' ? patient(1_000) : patient(8_000))
    expect(machineProcesses(machine.id)).toEqual([])
  })

  it('continues when it answers again', async () => {
    const world = createHolding('logs', 4, Object.keys(PARTS).length)
    const machine = await world.launch({
      ...BRISK,
      run: 'echo step 1; until [ -e go ]; do sleep 0.1; done; echo step 2',
    })
    await machine.untilBeat(({ stalledSinceMs }) => stalledSinceMs !== undefined)
    await machine.untilBeat(({ stalledSinceMs }) => stalledSinceMs === undefined)
    writeFileSync(join(machine.root, 'work/go'), '')
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await machine.output()).toEqual(['step 1', 'step 2'])
  })
})
