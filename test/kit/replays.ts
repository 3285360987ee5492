import { layout } from '../../storage/layout'
import { readMarket } from '../../storage/market'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { replayPlan, replayVerdict } from '../../planner/why/replay'
import { arithmeticOfFirst } from '../../planner/why/why'
import type { RecordEntry } from '../../core/job/record'

/** Decisions on record that cannot be decided again, or come out differently, in words. Fabricated entries without facts are skipped. */
export async function unlikeReplays(store: ObjectStore, jobIds?: readonly string[]): Promise<string[]> {
  const wrong: string[] = []
  for (const jobId of jobIds ?? (await store.listFolders(layout.jobs())))
    for (const entry of await readRecords(store, jobId)) {
      const fault = await faultOf(store, entry)
      if (fault !== undefined) wrong.push(`${jobId}, record ${entry.seq} (${entry.kind}): ${fault}`)
    }
  return wrong
}

async function faultOf(store: ObjectStore, { kind, data }: RecordEntry): Promise<string | undefined> {
  if (kind === 'decided' && data?.facts !== undefined) {
    const { isSame, verdict } = replayVerdict(data)
    return isSame
      ? undefined
      : `decided ${JSON.stringify(verdict)} instead of ${JSON.stringify(data.verdict)}`
  }
  if ((kind !== 'planned' && kind !== 'waiting') || data?.facts === undefined) return undefined
  const answers = await Promise.all(data.facts.market.map((reading) => readMarket(store, reading)))
  if (answers.includes(undefined)) return 'a market document is missing'
  const replayed = replayPlan(data, answers as NonNullable<(typeof answers)[number]>[])
  if (replayed?.isSame !== true) return `planned ${JSON.stringify(replayed?.outcome)}`
  const { plan, facts } = replayed
  const lines = arithmeticOfFirst({ input: data.inputs, facts }, plan)
  const total = lines.reduce((sum, { addedMicroUsd }) => sum + addedMicroUsd, 0)
  const cost = plan.placements[0]?.costMicroUsd ?? 0
  return total === cost ? undefined : `the arithmetic sums to ${total} instead of ${cost}`
}
