import type { Restores } from '../core/job/checkpoint'
import { ignoreBadDocument, readDocument, type Parse } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** Ids of a job's checkpoints, grouped by the outcome of the programs that were restored from them. */
export interface RestoreHistory {
  /** A program continued from it at least once. */
  wentOn: ReadonlySet<string>
  /** Programs failed directly after it, and none ever continued. */
  failed: ReadonlySet<string>
  /** Last restore of each attempt, from which it continues or tries to. */
  lastOf: ReadonlyMap<number, string>
}

/** Reads which checkpoints the attempts of a job were restored from. An unreadable list counts as empty. */
export async function readRestoreHistory(
  store: ObjectStore,
  jobId: string,
  parse: Parse<Restores>,
): Promise<RestoreHistory> {
  const attempts = (await store.listFolders(layout.attempts(jobId))).map(Number).filter(Number.isInteger)
  const lists = await eachOf(attempts, async (attempt) => ({
    attempt,
    restores:
      (await readDocument(store, layout.restores(jobId, attempt), parse).catch(ignoreBadDocument))
        ?.restores ?? [],
  }))
  const idsWith = (outcome: string): string[] =>
    lists.flatMap(({ restores }) =>
      restores.filter((restore) => restore.outcome === outcome).map(({ checkpoint }) => checkpoint.id),
    )
  const wentOn = new Set(idsWith('went-on'))
  return {
    wentOn,
    failed: new Set(idsWith('failed').filter((id) => !wentOn.has(id))),
    lastOf: new Map(
      lists.flatMap(({ attempt, restores }) => {
        const last = restores.at(-1)
        return last === undefined ? [] : [[attempt, last.checkpoint.id] as const]
      }),
    ),
  }
}
