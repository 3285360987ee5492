/** Where a secret could be left behind: Temporal, the store, and the command lines of this host. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@temporalio/client'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import type { Place } from './canary'
import type { TestConnection } from './temporal'

const LOOK_EVERY_MS = 100

/** Command lines of all processes of this host that were seen, however short their life was. Of Linux; empty on another system. */
export class CommandLines {
  private readonly lines = new Set<string>()
  private readonly watching = new AbortController()

  watch(): void {
    void this.look()
  }

  stop(): void {
    this.watching.abort()
  }

  seen(): string[] {
    return [...this.lines]
  }

  private async look(): Promise<void> {
    const { signal } = this.watching
    while (!signal.aborted) {
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
        try {
          this.lines.add(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '))
        } catch {
          // It has ended meanwhile.
        }
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** Every execution of a namespace: its entry in lists, how it is described, and its whole history. */
export async function executionsIn(
  { client: { connection } }: TestConnection,
  namespace: string,
): Promise<Place[]> {
  const client = new Client({ connection, namespace })
  const places: Place[] = []
  for await (const listed of client.workflow.list()) {
    const handle = client.workflow.getHandle(listed.workflowId, listed.runId)
    const described = await handle.describe()
    const about = { listed, raw: [listed.raw, described.raw], memo: described.memo }
    const attributes = [listed.typedSearchAttributes, described.raw.workflowExecutionInfo?.searchAttributes]
    places.push(
      { name: `what is listed of ${listed.workflowId}`, content: { ...about, attributes } },
      { name: `history of ${listed.workflowId}`, content: await handle.fetchHistory() },
    )
  }
  return places
}

/** Every object of a store. */
export async function storedIn(storeUrl: string, when: string): Promise<Place[]> {
  const store = openStore(storeUrl) as S3Store
  try {
    const places: Place[] = []
    for await (const { key } of store.list(''))
      places.push({ name: `store ${when} ${key}`, content: [key, await store.get(key)] })
    return places
  } finally {
    await store.close()
  }
}
