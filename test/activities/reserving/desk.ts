import { MockActivityEnvironment } from '@temporalio/testing'
import { DefaultLogger } from '@temporalio/worker'
import { createReservingActivities } from '../../../activities/reserving/activities'
import type { ReservingDeps } from '../../../activities/reserving/deps'
import type { Backend } from '../../../backends/backend'
import { microUsd } from '../../../core/money/money'
import type { ReservationEntry, ReservingActivities } from '../../../core/reservation/activities'
import { DAY_MS } from '../../../core/time/time'
import { putReservationEntry, readReservationEntries } from '../../../storage/reservations'
import { BuyingPlace, INTENT, START_MS } from './place'

export const HOURLY = { type: 'p5', region: 'east', zone: 'east-a', perHourMicro: microUsd(2) }
export const WISH = {
  backend: 'scripted',
  kind: 'prepaid',
  types: ['p5'],
  count: 4,
  durationMs: DAY_MS,
} as const

/** Of an activity whose refusals are expected. */
export function environment(): MockActivityEnvironment {
  return new MockActivityEnvironment(
    { startToCloseTimeoutMs: 60_000 },
    { logger: new DefaultLogger('ERROR') },
  )
}

/** The activities of reservations, as a worker runs them: over a scripted market, with a record that a test reads. */
export class Desk extends BuyingPlace {
  readonly woken: string[] = []
  resources: unknown[] = []
  private seq = 0

  get activities(): ReservingActivities {
    const backend = {
      name: 'scripted',
      reserving: this.reserving,
      list: async () => this.resources,
    } as unknown as Backend
    return this.over(backend)
  }

  over(backend: Backend): ReservingActivities {
    const { store, clock } = this
    const wake = async (jobId: string): Promise<void> => void this.woken.push(jobId)
    const deps = { backend, store, now: () => clock.now(), wake } as unknown as ReservingDeps
    return createReservingActivities(deps)
  }

  run<Name extends keyof ReservingActivities>(
    name: Name,
    input: Omit<
      Parameters<ReservingActivities[Name]>[0],
      'recordSeq' | 'deployment' | 'owner' | 'reservationId'
    >,
  ): Promise<Awaited<ReturnType<ReservingActivities[Name]>>> {
    this.seq += 1
    const task = { reservationId: INTENT, deployment: 'dep', owner: 'ada', recordSeq: this.seq, ...input }
    const activity = this.activities[name] as (input: unknown) => Promise<never>
    return environment().run(() => activity(task))
  }

  /** As a client does when it asks for a reservation. */
  note(id: string): Promise<unknown> {
    const entry = { seq: 0, atMs: START_MS, kind: 'requested', summary: '', data: {} } as const
    return putReservationEntry(this.store, id, entry)
  }

  record(id = INTENT): Promise<ReservationEntry[]> {
    return readReservationEntries(this.store, id)
  }

  look(changes: object = {}): ReturnType<ReservingActivities['lookForCapacity']> {
    const rule = { unaskedMaxMicroUsd: microUsd(5) }
    return this.run('lookForCapacity', { wish: WISH, rule, sends: 0, isFirst: false, ...changes })
  }

  /** Four machines by the hour, active, of this wish. */
  hourly(changes: object = {}): { id: string; region: string } {
    const tags = { deployment: 'dep', intent: INTENT }
    return { id: this.market.hold({ kind: 'hourly', ...HOURLY, total: 4, tags, ...changes }), region: 'east' }
  }
}
