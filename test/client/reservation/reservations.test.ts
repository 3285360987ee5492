import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { extendReservation } from '../../../client/reservation/reservations'
import { DAY_MS } from '../../../core/time/time'
import { putReservationEntry } from '../../../storage/reservations'
import { ownedOf } from '../../planner/reserving/facts'
import { ClientWorld, NOW } from '../world'

let world: ClientWorld
let sent: unknown[]

beforeEach(async () => {
  world = await ClientWorld.make()
  sent = []
  const status = { id: 'res-a', state: 'active', reservation: ownedOf({ endsAtMs: NOW }) }
  const handle = {
    query: async () => status,
    describe: async () => ({ status: { name: 'RUNNING' } }),
    executeUpdate: async (name: string, { args }: { args: unknown[] }) => {
      sent.push([name, ...args])
      return { message: 'Extended.' }
    },
  }
  world.client = {
    workflow: { getHandle: () => handle },
    withDeadline: (_: number, work: () => unknown) => work(),
  } as unknown as Client
  const requested = { seq: 0, atMs: 0, kind: 'requested', summary: '', data: {} } as const
  await putReservationEntry(world.store, 'res-a', requested)
})
afterEach(() => world.remove())

describe('an extension', () => {
  it.each([
    ['is of the end that the caller saw', { seenEndsAtMs: NOW - DAY_MS }, NOW - DAY_MS],
    ['is of the end that is shown now, for a caller who saw none', {}, NOW],
  ])('%s', async (_, seen, seenEndsAtMs) => {
    const asked = { durationMs: DAY_MS, upfrontMaxMicroUsd: 5 }
    await extendReservation(world.context, 'res-a', { ...asked, ...seen })
    expect(sent).toEqual([['extendReservation', { ...asked, seenEndsAtMs, by: 'somebody' }]])
  })
})
