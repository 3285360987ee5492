import { limitedTo } from '../../calls'

/** How often AWS interrupted spot machines of a type in the last month, as the Spot Instance Advisor publishes it. */
export interface Interruptions {
  /** `<5%`, `5-10%`, ...; nothing for a type that AWS publishes nothing about. */
  of(pool: { region: string; type: string }): string | undefined
}

/** The public file behind the Spot Instance Advisor; it needs no credentials. */
const BUCKET = 'spot-bid-advisor'
const FILE = 'spot-advisor-data.json'
/** Limit on the wait for this optional addition to an answer. */
const PATIENCE_MS = 5_000

interface Advice {
  ranges?: { index?: number; label?: string }[]
  spot_advisor?: Record<string, Record<string, Record<string, { r?: number }>>>
}

/** @param endpoint a server that replaces AWS */
export function advisorUrl(endpoint: string | undefined): string {
  return endpoint === undefined
    ? `https://${BUCKET}.s3.amazonaws.com/${FILE}`
    : `${endpoint.replace(/\/$/, '')}/${BUCKET}/${FILE}`
}

/** The published bands; `undefined` if they cannot be read. */
export async function readInterruptions(
  url: string,
  signal: AbortSignal,
): Promise<Interruptions | undefined> {
  const bands = await readBands(url, signal)
  return bands && { of: ({ region, type }) => bands[region]?.[type] }
}

/** Band by Region and type. */
async function readBands(
  url: string,
  signal: AbortSignal,
): Promise<Record<string, Record<string, string>> | undefined> {
  try {
    const answer = await fetch(url, { signal: limitedTo(PATIENCE_MS, signal) })
    if (!answer.ok) return undefined
    return bandsOf((await answer.json()) as Advice)
  } catch {
    return undefined
  }
}

function bandsOf({
  ranges = [],
  spot_advisor: regions = {},
}: Advice): Record<string, Record<string, string>> {
  const labels = new Map(ranges.map(({ index, label }) => [index, label]))
  return Object.fromEntries(
    Object.entries(regions).map(([region, systems]) => [
      region,
      Object.fromEntries(
        Object.entries(systems['Linux'] ?? {}).flatMap(([type, { r }]) => {
          const label = labels.get(r)
          return label === undefined ? [] : [[type, label] as const]
        }),
      ),
    ]),
  )
}
