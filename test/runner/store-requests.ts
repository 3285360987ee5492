import { expect } from '@jest/globals'
import { MachineWatch } from '../../activities/watch/machine'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { LOG_CHUNKS_PER_BEAT, REQUESTS_PER_BEAT, REQUESTS_PER_SAVE } from '../../planner/plan/assumptions'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import type { S3Store } from '../../storage/s3/s3-store'
import { Place } from '../activities/place'
import { FaultProxy } from '../support/fault-proxy'
import { JOB, type Machine } from './world'

/** How often each kind of request was made: `GET lease.json`, or `LIST limits/`. */
type Requests = Record<string, number>

export interface Asked {
  runner: Requests
  /** Of the control plane that watches the machine. */
  watch: Requests
  beats: number
  tookMs: number
}

/** What a runner, and the watch of its machine, ask of the store over some beats. `keyId` is that of the grant of the runner. */
export async function askedOver(
  beats: number,
  { machine, proxy, keyId }: { machine: Machine; proxy: FaultProxy; keyId: string },
): Promise<Asked> {
  const place = await Place.make()
  const { order, handle } = place.launched()
  const watching = await FaultProxy.open(proxy.target)
  const store = openStore(decodeURIComponent(machine.storeUrl).replace(proxy.url, watching.url)) as S3Store
  const watch = new MachineWatch(
    { store, now: Date.now, monotonicMs: () => performance.now(), backend: place.backend },
    { order: { ...order, jobId: JOB, attempt: 1 }, handle, timing: DEFAULT_TIMING, isRunning: true },
  )
  const fromMs = Date.now()
  const before = proxy.signedBy(keyId).length
  const first = (await machine.beat())!.seq
  try {
    for (let seen = first; seen < first + beats;) {
      const beat = await machine.untilBeat(({ seq }) => seq > seen)
      expect(await watch.check('not-due', true)).toBeUndefined()
      seen = beat.seq
    }
    const last = (await machine.beat())!.seq
    return {
      runner: requestsIn(proxy.signedBy(keyId).slice(before)),
      watch: requestsIn(watching.seen),
      beats: last - first,
      tookMs: Date.now() - fromMs,
    }
  } finally {
    await store.close()
    await watching.close()
    await place.dispose()
  }
}

/** That the store is asked as forecasts assume. `signed`: the runner's requests from its start to its end, in which checkpoint 30 was saved. */
export function expectAsForecast({ runner, watch, beats, tookMs }: Asked, signed: readonly string[]): void {
  const { 'PUT logs/N.ndjson': chunks = 0, ...others } = runner
  // The runner looks for its claim twice a minute.
  const atEachBeat = without(others, /checkpoints\/|^GET claim\.json$/)
  expect(Object.keys(atEachBeat).sort()).toEqual([
    'GET drain.json',
    'GET lease.json',
    'LIST limits/',
    'PUT beat.json',
  ])
  // The interval of beats and that of reading begin at different moments, and reading takes longer.
  expect(Math.max(...Object.values(atEachBeat))).toBeLessThanOrEqual(beats + 2)
  const polled = without(atEachBeat, /^PUT/)
  expect(Math.max(...Object.values(polled)) - Math.min(...Object.values(polled))).toBeLessThanOrEqual(1)
  expect(kindsOf(atEachBeat, 'write')).toBe(REQUESTS_PER_BEAT.writes)
  // One more by the watch: the beat.
  expect(kindsOf(atEachBeat, 'read') + 1).toBe(REQUESTS_PER_BEAT.reads)
  expect(watch['GET beat.json']).toBeLessThanOrEqual(beats + 2)
  // The program prints all the time: no more chunks than the range of these charges allows for.
  expect(chunks).toBeLessThanOrEqual(2 + tookMs / (DEFAULT_TIMING.beatMs / (2.5 * LOG_CHUNKS_PER_BEAT)))

  const folder = `/${layout.checkpoint(JOB, 30, 1)}/`
  const saving = requestsIn(signed.filter((line) => line.includes(folder) && !line.includes('partNumber=')))
  // The result is read where no new beat has come, and the lease by each watch once.
  const thinning = without(watch, /^[A-Z]+ (?:beat|lease|result)\.json$/)
  expect(sumOf(saving, 'write') + sumOf(thinning, 'write')).toBeLessThanOrEqual(REQUESTS_PER_SAVE.writes)
  expect(sumOf(saving, 'read') + sumOf(thinning, 'read')).toBeLessThanOrEqual(REQUESTS_PER_SAVE.reads)
  expect(sumOf(thinning, 'write')).toBeGreaterThan(0)
}

/** As they are billed: lists cost as much as writes, and deletions nothing. */
type Billed = 'read' | 'write'
const BILLED: Record<Billed, RegExp> = { write: /^(?:PUT|POST|LIST) /, read: /^(?:GET|HEAD) / }

function requestsIn(lines: readonly string[]): Requests {
  const counts: Requests = {}
  for (const line of lines) {
    const [method, path] = line.split(' ') as [string, string]
    const { pathname, searchParams } = new URL(path, 'http://store')
    const listed = searchParams.get('prefix')
    const key = (listed ?? pathname).split(`${JOB}/`)[1]!.replace(/^attempts\/\d+\//, '')
    const kind = `${listed === null ? method : 'LIST'} ${key.replace(/\d+-\d+(?=[./])/g, 'N')}`
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

function without(requests: Requests, pattern: RegExp): Requests {
  return Object.fromEntries(Object.entries(requests).filter(([kind]) => !pattern.test(kind)))
}

function kindsOf(requests: Requests, billed: Billed): number {
  return Object.keys(requests).filter((kind) => BILLED[billed].test(kind)).length
}

function sumOf(requests: Requests, billed: Billed): number {
  const counted = Object.entries(requests).filter(([kind]) => BILLED[billed].test(kind))
  return counted.reduce((sum, [, count]) => sum + count, 0)
}
