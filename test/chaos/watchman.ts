import { setTimeout as sleep } from 'node:timers/promises'
import { livingProcesses } from './machines'

const LOOK_EVERY_MS = 250

/** Looks all the time at which machines of the jobs have living processes; nothing of the product is asked. */
export class Watchman {
  /** Sightings of two machines of one job at once, in words. */
  readonly meetings = new Set<string>()
  /** When each machine was last seen to live, by attempt id. */
  readonly lastSeenAtMs = new Map<string, number>()

  constructor(private readonly jobIds: readonly string[]) {}

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.look()
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  private look(): void {
    const machines = new Set(livingProcesses().map(({ machine }) => machine))
    for (const jobId of this.jobIds) {
      const living = [...machines].filter((machine) => machine?.startsWith(`${jobId}-`) === true)
      for (const machine of living) this.lastSeenAtMs.set(machine!, Date.now())
      if (living.length > 1) this.meetings.add(`the machines ${living.sort().join(' and ')} live at once`)
    }
  }
}
