import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Order } from '../../../core/job/plan'
import { HOUR_MS } from '../../../core/time/time'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { LocalHarness } from './harness'
import { useRealRunner } from './runners'
import { IS_SELECTION } from '../../support/selection'

const HOOK = require.resolve('../../support/typescript.mjs')
const CHILD = require.resolve('./launch-and-die.ts')
const realRunner = useRealRunner()
/** More than a launch takes; the tests say how many it really took. */
const STEPS_MAX = 40
/** `npm test` dies at some of the steps only. */
const STRIDE = IS_SELECTION ? 7 : 1

interface Death {
  signal: NodeJS.Signals | null
  output: string
}

/** Some twenty processes are started, one after the other, by each of the long tests. */
const PATIENCE_MS = 180_000

/** Launches an order in a process of its own, which dies before the given step. */
function launchAndDie(h: LocalHarness, order: Order, step: number): Promise<Death> {
  const task = JSON.stringify({ step, config: h.config, runnerPath: h.runnerPath, order })
  const args = ['--import', HOOK, '-e', `require(${JSON.stringify(CHILD)})`, task]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, (error, output, complaint) => {
      if (error !== null && error.signal === undefined) reject(new Error(complaint))
      else resolve({ signal: error?.signal ?? null, output })
    })
  })
}

describe('a launch whose process dies on the way', () => {
  let h: LocalHarness
  beforeEach(async () => {
    h = await LocalHarness.make(realRunner(), { slots: STEPS_MAX })
  })
  afterEach(() => h.dispose())

  it(
    'is completed by the same order sent again, at whatever step it died, with one machine',
    async () => {
      let deaths = 0
      for (let step = 1; step <= STEPS_MAX; step += STRIDE) {
        const order = await h.order()
        const { signal } = await launchAndDie(h, order, step)
        const found = await h.backend.find(order.attemptId, patiently())
        expect(['absent', 'found']).toContain(found.kind)
        const outcome = await h.backend.launch(order, patiently())
        if (outcome.kind !== 'launched') throw new Error(`step ${step}: ${JSON.stringify(outcome)}`)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        expect(await h.backend.observe([outcome.handle], patiently())).toEqual([{ state: 'running' }])
        expect(await h.backend.launch(order, patiently())).toEqual(outcome)
        await h.backend.terminate(outcome.handle, patiently())
        expect(await h.runningOf(order.attemptId)).toBe(0)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        expect(await h.backend.list(order.deployment, patiently())).toEqual([])
        if (signal === null) break
        expect(signal).toBe('SIGKILL')
        deaths++
      }
      // Every step from the first folder to the record of the process was died at, and then one launch was let through.
      expect(deaths).toBeGreaterThan(10 / STRIDE)
      expect(deaths).toBeLessThan(STEPS_MAX)
    },
    PATIENCE_MS,
  )

  it(
    'is ended by what find or list has of it, at whatever step it died, and nothing remains',
    async () => {
      const seen = new Set<string>()
      for (let step = 1; step <= STEPS_MAX; step++) {
        const order = await h.order()
        const { signal } = await launchAndDie(h, order, step)
        const found = await h.backend.find(order.attemptId, patiently())
        const handles = found.kind === 'found' ? found.handles : []
        const listed = await h.backend.list(order.deployment, patiently())
        expect(listed.map((resource) => resource.handle)).toEqual(handles)
        const [observation] = await h.backend.observe(handles, patiently())
        // A machine that runs although its launch died is one whose process was started and not yet recorded.
        if (signal !== null) seen.add(observation?.state ?? found.kind)
        for (const handle of handles) await h.backend.terminate(handle, patiently())
        expect(await h.runningOf(order.attemptId)).toBe(0)
        expect(existsSync(join(h.root, 'machines', order.attemptId))).toBe(false)
        expect(await h.backend.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
        if (signal === null) break
      }
      expect(seen).toEqual(new Set(['absent', 'pending', 'running']))
    },
    PATIENCE_MS,
  )

  it('leaves a machine that outlives it, and that another process finds and ends', async () => {
    const order = await h.order()
    const { output } = await launchAndDie(h, order, 0)
    expect(JSON.parse(output)).toMatchObject({ outcome: 'launched' })
    expect(await h.startsOf(order.attemptId)).toBe(1)
    const found = await h.backend.find(order.attemptId, patiently())
    if (found.kind !== 'found') throw new Error(found.kind)
    expect(await h.backend.observe(found.handles, patiently())).toEqual([{ state: 'running' }])
    await h.backend.terminate(found.handles[0]!, patiently())
    expect(await h.runningOf(order.attemptId)).toBe(0)
  })

  it('leaves nothing behind for longer than a while', async () => {
    const order = await h.order()
    for (let step = 1; readdirSync(join(h.root, 'staging')).length === 0; step++)
      await launchAndDie(h, order, step)
    let monotonicMs = 0
    const clocks = { clock: () => Date.now() + 2 * HOUR_MS, monotonic: () => monotonicMs }
    const later = await h.reopen({}, clocks)
    for (; monotonicMs <= HOUR_MS; monotonicMs += HOUR_MS) await later.launch(await h.order(), patiently())
    await until(() => readdirSync(join(h.root, 'staging')).length === 0)
  })
})
