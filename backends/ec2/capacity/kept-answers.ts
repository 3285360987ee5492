import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { HOUR_MS, SECOND_MS } from '../../../core/time/time'
import type { RegionApi } from '../sdk/api-capacity'

/** Validity of answers about capacity, which changes from minute to minute. */
const CAPACITY_FRESH_MS = 30 * SECOND_MS
/** Types, zones and list prices change a few times a year. */
const CATALOG_FRESH_MS = HOUR_MS

export interface KeptAnswersOptions {
  /** Folder with answers of earlier commands; if missing, only those of this process are kept. */
  directory?: string | undefined
  /** Whose answers they are: account, keys and endpoint. */
  identity: string
  /** Ask anew, whatever is kept. */
  isFresh: boolean
  clock: () => number
}

/** Answers of a short while ago, so that the same question is asked once. A file that cannot be read or written is as if missing. */
export class KeptAnswers {
  private readonly asked = new Map<string, Promise<unknown>>()
  /** Age of the oldest answer that came from an earlier command. */
  oldestMs: number | undefined

  constructor(private readonly options: KeptAnswersOptions) {}

  answer<T>(question: readonly unknown[], freshForMs: number, ask: () => Promise<T>): Promise<T> {
    const key = createHash('sha256')
      .update(JSON.stringify([this.options.identity, ...question]))
      .digest('hex')
    const known = this.asked.get(key) as Promise<T> | undefined
    if (known !== undefined) return known
    const answer = this.readOrAsk(key, freshForMs, ask)
    this.asked.set(key, answer)
    answer.catch(() => this.asked.delete(key))
    return answer
  }

  private async readOrAsk<T>(key: string, freshForMs: number, ask: () => Promise<T>): Promise<T> {
    const kept = this.read<T>(key, freshForMs)
    if (kept !== undefined) return kept.value
    const value = await ask()
    this.write(key, value)
    return value
  }

  private read<T>(key: string, freshForMs: number): { value: T } | undefined {
    const { directory, isFresh, clock } = this.options
    if (directory === undefined || isFresh) return undefined
    try {
      const kept = deserialize(readFileSync(join(directory, key))) as { atMs: number; value: T }
      const ageMs = clock() - kept.atMs
      if (!(ageMs >= 0 && ageMs < freshForMs)) return undefined
      this.oldestMs = Math.max(this.oldestMs ?? 0, ageMs)
      return kept
    } catch {
      return undefined
    }
  }

  private write(key: string, value: unknown): void {
    const { directory, clock } = this.options
    if (directory === undefined) return
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      const path = join(directory, key)
      // The file is renamed into place, so that a reader sees all of it or nothing.
      writeFileSync(`${path}.${process.pid}`, serialize({ atMs: clock(), value }), { mode: 0o600 })
      renameSync(`${path}.${process.pid}`, path)
    } catch {
      // The answer itself is good.
    }
  }

  /** Removes files that are too old for every question. */
  tidy(): void {
    const { directory, clock } = this.options
    if (directory === undefined) return
    try {
      for (const name of readdirSync(directory)) {
        const path = join(directory, name)
        if (clock() - statSync(path).mtimeMs > CATALOG_FRESH_MS) rmSync(path, { force: true })
      }
    } catch {
      // Another process tidies too, or nothing is kept.
    }
  }
}

/** Validity of the answers to each question. Other questions are asked each time. */
const FRESH_MS: Readonly<Record<string, number>> = {
  types: CATALOG_FRESH_MS,
  typeZones: CATALOG_FRESH_MS,
  onDemandPrice: CATALOG_FRESH_MS,
  onDemandPrices: CATALOG_FRESH_MS,
  spotPrices: CAPACITY_FRESH_MS,
  reservations: CAPACITY_FRESH_MS,
  regions: CATALOG_FRESH_MS,
  blockTypes: CATALOG_FRESH_MS,
  zoneIds: CATALOG_FRESH_MS,
  offerings: CAPACITY_FRESH_MS,
  topology: CAPACITY_FRESH_MS,
  // AWS limits how many different ones an account may ask for in a day.
  placementScores: CATALOG_FRESH_MS,
  capacityScores: CAPACITY_FRESH_MS,
  spotChanges: CAPACITY_FRESH_MS,
  subnetsOfAll: CAPACITY_FRESH_MS,
  countedMachines: CAPACITY_FRESH_MS,
  quota: CAPACITY_FRESH_MS,
  quotaRequests: CAPACITY_FRESH_MS,
}

/** Wraps the questions so that each is asked once within its time. */
export function keepingAnswers(api: RegionApi, region: string, kept: KeptAnswers): RegionApi {
  const keepingAll = <Part extends object>(part: Part): Part => {
    const entries = Object.entries(part) as [string, (...args: unknown[]) => Promise<unknown>][]
    return Object.fromEntries(
      entries.map(([name, ask]) => {
        const freshForMs = FRESH_MS[name]
        if (freshForMs === undefined) return [name, ask]
        // The last argument is the signal.
        const keeping = (...args: unknown[]): Promise<unknown> =>
          kept.answer([region, name, ...args.slice(0, -1)], freshForMs, () => ask(...args))
        return [name, keeping]
      }),
    ) as Part
  }
  const { network, market, capacity, account } = api
  return {
    network,
    market: keepingAll(market),
    capacity: keepingAll(capacity),
    account: keepingAll(account),
  }
}
