import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { excerptOf } from '../../core/job/plan'
import { makePlan } from '../../planner/plan/plan'
import { patient } from '../support/patience'
import { detailed, many, OFFERS, planMany, reportFor, spec } from './many-offers'
import { request } from './wishes'

const ROOT = join(__dirname, '..', '..')
const TEMPORAL_BYTES_MAX = 2 * 2 ** 20
/** In a process of its own: Jest slows every use of `Math` down. */
const MEASURE = "console.log(JSON.stringify(require('./test/planner/many-offers.ts').planTimesMs()))"

describe(`a plan of ${OFFERS} offers`, () => {
  it('is sent in less than Temporal takes, with every place', () => {
    const sent = JSON.stringify(planMany())
    const { placements, others } = JSON.parse(sent) as ReturnType<typeof planMany>
    expect(placements.length + others.length).toBe(OFFERS)
    expect(placements).toHaveLength(20)
    expect(Buffer.byteLength(sent)).toBeLessThan(TEMPORAL_BYTES_MAX)
  })

  it('is made within 300 ms, whatever the wishes leave of it', () => {
    const hook = join(ROOT, 'test/support/typescript.mjs')
    const { stdout, stderr } = spawnSync(process.execPath, ['--import', hook, '-e', MEASURE], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    const tookMs = JSON.parse(stdout) as number[]
    expect(tookMs).toHaveLength(3)
    expect(Math.min(...tookMs)).toBeGreaterThan(0)
    expect(Math.max(...tookMs)).toBeLessThan(patient(300))
  })

  it('is recorded in a fraction of that, and its rejections are grouped', () => {
    const plan = makePlan(request(many, { spec: { ...spec, isInterruptible: false } }))
    const { placements, othersTotal, rejections } = excerptOf(plan)
    expect(placements.length + othersTotal).toBe(OFFERS / 2)
    expect(rejections).toMatchObject([{ count: OFFERS / 2, offerKeys: { length: 3 } }])
    expect(JSON.stringify(excerptOf(plan)).length).toBeLessThan(TEMPORAL_BYTES_MAX / 20)
  })

  it('is sent in less than Temporal takes with far more offers, too: the last are only counted', () => {
    const more = Array.from({ length: 3 * OFFERS }, (_, index) => detailed(index))
    const report = reportFor(request(more, { spec }))
    expect(report.placements.length + report.othersTotal).toBe(more.length)
    expect(report.others.length).toBeLessThan(report.othersTotal)
    expect(Buffer.byteLength(JSON.stringify(report))).toBeLessThan(TEMPORAL_BYTES_MAX)
  })
})
