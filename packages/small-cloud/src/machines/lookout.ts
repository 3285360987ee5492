import { readProcesses, type ProcessTable } from './processes'

type Watcher = (table: ProcessTable) => void

/** Scans the processes of this host periodically, once for all subscribers. */
export class Lookout {
  private readonly watchers = new Set<Watcher>()
  private timer: NodeJS.Timeout | undefined
  private isLooking = false

  constructor(private readonly everyMs: number) {}

  add(watcher: Watcher): void {
    this.watchers.add(watcher)
    this.timer ??= setInterval(() => void this.look(), this.everyMs).unref()
  }

  remove(watcher: Watcher): void {
    this.watchers.delete(watcher)
    if (this.watchers.size > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  private async look(): Promise<void> {
    if (this.isLooking) return
    this.isLooking = true
    try {
      const table = await readProcesses()
      for (const watcher of this.watchers) watcher(table)
    } catch {
      // A host that cannot start more processes cannot list them either; the next scan may succeed.
    } finally {
      this.isLooking = false
    }
  }
}
