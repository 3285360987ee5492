import { Dice } from '../kit/dice'
import { chunked, harness, type Report } from '../kit/harness'
import { inLanes } from '../kit/lanes'
import { total } from '../kit/table'
import { drawRequest } from './grammar'
import { Stage } from './stage'

/** Requests between two looks at the disk, all with one grant. */
const CHUNK = 500
const PARALLEL = 8

interface Judged extends Report {
  counts: Readonly<Record<string, number>>
}

/** Requests drawn from a grammar of S3, with ten grants, through the front of the small cloud to its real server. */
export const STORE_REQUESTS = harness({
  seeds: 100_000,
  // All cases look at one disk.
  jobs: 1,
  isQuiet: true,
  options: {},
  around: async (_, use) => {
    const stage = await Stage.open()
    try {
      return await use(stage)
    } finally {
      await stage.close()
    }
  },
  draw: ({ seeds }) => chunked(seeds, CHUNK),
  live: async ({ seeds }: ReturnType<typeof chunked>[number], stage: Stage): Promise<Judged> => {
    const holder = stage.holders[Math.floor((seeds[0]! - 1) / CHUNK) % stage.holders.length]!
    const names = stage.namesFor(holder)
    const hidden = stage.hiddenFrom(holder)
    const before = stage.othersThan(holder)
    const breaches: string[] = []
    const counts: Record<string, number> = { requests: seeds.length }
    const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1)
    await inLanes(seeds, { jobs: PARALLEL }, async (seed) => {
      const request = drawRequest(new Dice(seed), names)
      const { status, body } = await stage.raw.send(request, holder.keys)
      const isThrough = status >= 200 && status < 300
      count(isThrough ? `let through: ${request.method}` : `refused with ${status}`)
      if (hidden.some((text) => body.includes(text)))
        breaches.push(`seed ${seed}: ${request.method} ${request.target} has read another's object`)
    })
    breaches.push(...differences(before, stage.othersThan(holder)))
    const written = stage.contentsOf(holder)
    if (hidden.some((text) => written.includes(text))) breaches.push("a copy of another's object was made")
    return { state: 'judged', breaches, story: [], counts }
  },
  table: (reports) => [...total(reports.map(({ counts }) => counts))].sort(),
})

function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])]
  return paths
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path} was ${before.has(path) ? (after.has(path) ? 'changed' : 'removed') : 'made'}`)
}
