import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Context } from '../../../client/context'
import { approveReservation } from '../../../client/reservation/reservations'
import { showReservation } from '../../../client/reservation/views'
import type { ReservationEntry } from '../../../core/reservation/activities'
import { FileStore } from '../../../storage/file-store'
import { putReservationEntry } from '../../../storage/reservations'
import { ownedOf } from '../../planner/reserving/facts'

let folder: string
let context: Context

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crucible-reservation-views-'))
  const silent = { query: () => Promise.reject(new Error('no worker')), describe: () => Promise.resolve({}) }
  const client = {
    workflow: { getHandle: () => silent },
    withDeadline: (_: number, work: () => unknown) => work(),
  }
  const store = new FileStore(folder, Date.now)
  context = { store, temporal: () => Promise.resolve(client) } as unknown as Context
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const note = (seq: number, kind: ReservationEntry['kind'], data: unknown): Promise<unknown> =>
  putReservationEntry(context.store, 'res-a', { seq, atMs: seq, kind, summary: `Entry ${seq}.`, data })

describe('a reservation for which no worker answers', () => {
  it('is shown as its record last says, without a cost that has grown since', async () => {
    const wish = { backend: 'ec2', kind: 'hourly', types: ['g5.xlarge'], count: 1, durationMs: 1 }
    const input = { reservationId: 'res-a', owner: 'ada', wish, rule: {}, submittedAtMs: 1 }
    await note(0, 'requested', input)
    expect((await showReservation(context, 'res-a')).status).toMatchObject({
      id: 'res-a',
      owner: 'ada',
      wish,
      state: null,
      spentMicroUsd: null,
      trouble: expect.stringMatching(/^No worker responds/),
    })
    const held = { state: 'active', reservation: ownedOf(), upfrontMicroUsd: 5, idleMicroUsd: 2 }
    await note(1, 'held', { held, message: '', next: 'hold', lookInMs: 1 })
    await note(2, 'changed', {})
    expect((await showReservation(context, 'res-a')).status).toMatchObject({
      state: 'active',
      message: 'Entry 1.',
      reservation: ownedOf(),
      spentMicroUsd: null,
      idleMicroUsd: null,
    })
  })

  it('is not approved, with the words that its state is unknown and why', async () => {
    const wish = { backend: 'ec2', kind: 'prepaid', types: ['p5.48xlarge'], count: 1, durationMs: 1 }
    const data = { reservationId: 'res-c', owner: 'ada', wish, rule: {}, submittedAtMs: 1 }
    await putReservationEntry(context.store, 'res-c', {
      seq: 0,
      atMs: 0,
      kind: 'requested',
      summary: '',
      data,
    })
    await expect(approveReservation(context, 'res-c')).rejects.toThrow(
      'Nothing of res-c waits for approval: its state is unknown. No worker responds; showing its record.',
    )
  })

  it('has cost what was paid for it if it is prepaid', async () => {
    const wish = { backend: 'ec2', kind: 'prepaid', types: ['p5.48xlarge'], count: 1, durationMs: 1 }
    const put = (seq: number, kind: ReservationEntry['kind'], data: unknown): Promise<unknown> =>
      putReservationEntry(context.store, 'res-b', { seq, atMs: seq, kind, summary: '', data })
    await put(0, 'requested', { reservationId: 'res-b', owner: 'ada', wish, rule: {}, submittedAtMs: 1 })
    const held = { state: 'scheduled', reservation: ownedOf(), upfrontMicroUsd: 5, idleMicroUsd: 0 }
    await put(1, 'held', { held, message: '', next: 'hold', lookInMs: 1 })
    expect((await showReservation(context, 'res-b')).status).toMatchObject({
      spentMicroUsd: 5,
      idleMicroUsd: 0,
    })
  })
})
