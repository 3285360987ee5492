/** Runs that the owner of a schedule asks for, beyond its calendar. */
import { randomUUID } from 'node:crypto'
import { eachOf } from '../../storage/parallel'
import { putPermit, withdrawPermit } from '../../storage/schedule-permits'
import type { Context } from '../context'

type Wanted = { kind: 'trigger' } | { kind: 'backfill'; startsAtMs: number }

/** Allows runs in the store, and asks Temporal for them. Without its answer, no run is allowed, so that a repeated command makes no second one. */
export async function permitted(
  { store, now, config }: Context,
  name: string,
  runs: readonly Wanted[],
  ask: () => Promise<void>,
): Promise<void> {
  const atMs = now()
  const permits = runs.map((run) => ({ ...run, id: `${run.kind}-${randomUUID()}`, atMs, by: config.owner }))
  await eachOf(permits, (permit) => putPermit(store, name, permit))
  try {
    await ask()
  } catch (error) {
    await eachOf(permits, ({ id }) => withdrawPermit(store, name, id)).catch(() => undefined)
    throw error
  }
}
