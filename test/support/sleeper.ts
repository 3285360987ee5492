import { sleep } from '@temporalio/workflow'

/** Waits, and answers how long that was by its own clock, in milliseconds. */
export async function sleeper(durationMs: number): Promise<number> {
  const before = Date.now()
  await sleep(durationMs)
  return Date.now() - before
}
