/** Jobs in capacity that is reserved, on EC2 over the wire: driven from a block before it ends, refused by one that is full, kept waiting. */
import { describe, expect, it, jest } from '@jest/globals'
import type { BackendChoice } from '../../core/offer'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { USEFUL_RUN_MS } from '../../planner/plan/assumptions'
import { BESIDE } from '../backends/ec2/harness'
import { QUICK, type CloudDeployment } from './deployment'
import { onDeployment } from './hooks'
import { patient } from '../support/patience'
import { itInAll } from '../support/selection'

jest.setTimeout(300_000)

const ZONE = 'us-east-1a'
/** From the end of a block back to the end of the machines in it. */
const ENDING_MS = 30 * MINUTE_MS
/** Of the settings of these deployments. */
const DRAIN_MS = Math.round(patient(8 * SECOND_MS))
const POWER_OFF_MS = Math.round(patient(2 * SECOND_MS))
/** From the reservation to a place in it, at most. */
const START_MS = Math.round(patient(8 * SECOND_MS))
/** With so much left of it a block is just worth a start. */
const JUST_ENOUGH_MS = USEFUL_RUN_MS + DRAIN_MS + POWER_OFF_MS + CLOCK_SLACK_MS

/** Our meter begins at the launch, the cloud's when the machine runs. */
const SLOW_START_MS = patient(10 * SECOND_MS)

const RESERVED: BackendChoice[] = [{ backend: 'ec2', capacityType: 'reserved' }]

const SETTINGS = {
  ...QUICK,
  CRUCIBLE_EC2_RESERVATIONS: 'all',
  CRUCIBLE_DRAIN: `${DRAIN_MS / 1_000}s`,
  CRUCIBLE_POWER_OFF: `${POWER_OFF_MS / 1_000}s`,
}

let d: CloudDeployment

onDeployment({ world: { durations: { osShutdown: 1_000 } }, settings: SETTINGS }, (started) => {
  d = started
})

/** Each of these jobs asks for chips of its own, so that none takes the others' places. */
const on = (chip: string) => ({ accelerators: [chip] })

describe('a job in a Capacity Block', () => {
  it.concurrent('has saved and left it before it ends, and continues elsewhere', async () => {
    const block = d.cloud.reserve({
      kind: 'capacity-block',
      type: 'g5.xlarge',
      zone: ZONE,
      count: 1,
      ends: ENDING_MS + JUST_ENOUGH_MS + START_MS,
    })
    const cutOffMs = block.endsAtMs! - ENDING_MS
    const id = await d.submit({ id: 'job-leaves', resources: on('A10G') })
    const running = await d.atStep(id, 40)
    expect(running.attempts[0]).toMatchObject({
      capacityType: 'reserved',
      realised: { capacityType: 'reserved', reservationId: block.id, priceMicroUsdPerHour: BESIDE },
    })
    expect(running.placementReasons.join()).toMatch(/paid up front.*1 of 1 free.*reservation ends at/)
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first).toMatchObject({ state: 'stopped', reason: 'expired' })
    expect(first!.stepsLost).toBeLessThanOrEqual(1)
    expect(first!.endedAtMs).toBeLessThan(cutOffMs)
    expect(second!.restoredFrom).toEqual(first!.checkpoint)
    expect(second!.realised!.capacityType).not.toBe('reserved')
    const [machine] = d.machinesOf(id)
    expect(machine).toMatchObject({ reservation: block.id, state: 'terminated' })
    // The block was paid for: what is billed is disk and address.
    expect(machine!.bill.usd).toBeGreaterThan(0)
    expect(Math.abs(first!.costMicroUsd! - machine!.bill.usd * 1e6)).toBeLessThan(
      (BESIDE / HOUR_MS) * SLOW_START_MS,
    )
    expect(machine!.bill.untilMs).toBeLessThan(cutOffMs)
    expect(machine!.reason).not.toMatch(/Expired/)
    const told = (await d.client.events(id)).map(({ text }) => text).join('\n')
    expect(told).toContain('The reservation of its machine ended')
  })

  itInAll.concurrent('stays in it where more of it is bought meanwhile', async () => {
    const block = d.cloud.reserve({
      kind: 'capacity-block',
      type: 'g6.xlarge',
      zone: ZONE,
      count: 1,
      ends: ENDING_MS + JUST_ENOUGH_MS + START_MS,
    })
    const id = await d.submit({ id: 'job-stays-in', resources: on('L4') })
    await d.atStep(id, 20)
    d.cloud.extend(block.id, ENDING_MS + 30 * MINUTE_MS)
    const leavesAtMs = block.endsAtMs! - ENDING_MS - DRAIN_MS - POWER_OFF_MS - CLOCK_SLACK_MS
    // That nothing happens at an instant can only be seen after it.
    const { attempts } = await d.see(id, () => Date.now() > leavesAtMs + 3 * SECOND_MS)
    expect(await d.atStep(id, attempts[0]!.progress!.step! + 20)).toMatchObject({ state: 'running' })
    await d.client.cancel(id)
    expect(await d.ended(id)).toMatchObject({ state: 'cancelled' })
  })

  itInAll.concurrent('waits for one that has not begun, where it may run in nothing else', async () => {
    const block = d.cloud.reserve({
      kind: 'capacity-block',
      type: 'p5.4xlarge',
      zone: ZONE,
      count: 1,
      starts: 15 * SECOND_MS,
      ends: ENDING_MS + 30 * MINUTE_MS,
    })
    const id = await d.submit(
      { id: 'job-waits', resources: on('H100'), backends: RESERVED },
      { lastAttempt: 1 },
    )
    const waiting = await d.see(id, ({ reason }) => reason === 'waiting-for-capacity')
    expect(waiting.message).toMatch(
      new RegExp(`${block.id} is (scheduled|payment-pending): it cannot be used yet`),
    )
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 1 })
    expect(view.attempts[0]!.launchedAtMs! + SECOND_MS).toBeGreaterThanOrEqual(block.startsAtMs)
    expect(d.machinesOf(id).map(({ reservation }) => reservation)).toEqual([block.id])
  })
})

describe('a job for which there is a reservation', () => {
  it.concurrent('falls back where it has no place after all, and that is on record', async () => {
    const reservation = d.cloud.reserve({ kind: 'on-demand', type: 'g4dn.xlarge', zone: ZONE, count: 1 })
    d.cloud.addFault({ fault: 'no-capacity', times: 1, where: { capacity: 'reserved', type: 'g4dn.xlarge' } })
    const id = await d.submit({ id: 'job-falls-back', resources: on('T4') })
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first).toMatchObject({ capacityType: 'reserved', state: 'failed', realised: null })
    expect(first!.reason).toMatch(
      `capacity: The reservation ${reservation.id} gave none of its 1 free places`,
    )
    expect(second!.capacityType).not.toBe('reserved')
    expect(d.machinesOf(id).map(({ capacity }) => capacity)).toEqual([second!.realised!.capacityType])
  })
})
