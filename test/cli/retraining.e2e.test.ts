/** The retraining example on EC2 of the small cloud, as a user runs it: capacity bought, used and given back, twice. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from '@jest/globals'
import type { Crucible } from '../../client'
import type { ReservationStatus } from '../../core/reservation/reserving'
import type { RetrainResult } from '../../core/retraining/run'
import { testFolder } from '../support/folders'
import { patient } from '../support/patience'
import { until } from '../support/until'
import { startOnSmallCloud, type OnSmallCloud } from './on-small-cloud'
import type { CommandLine } from './process'

const EXAMPLE = join(__dirname, '..', '..', 'examples', 'retraining')
const TYPE = 'c7i.large'
const CAPACITY = `
capacity:
  backend: ec2
  kind: hourly
  types: ${TYPE}
  duration: 1h
  max_spend: $20
  share: none
`
const RUN_LIMIT_MS = patient(120_000)

interface Run {
  result: RetrainResult | null
}

/** Other reservations of the small cloud has bought. */
interface Bought {
  id: string
  state: string
  tags: Record<string, string>
  bill: { idleUsd: number }
}

let deployment: OnSmallCloud
let crucible: CommandLine
let client: Crucible

beforeAll(async () => {
  const folder = testFolder('retraining')
  cpSync(EXAMPLE, folder, { recursive: true })
  const file = readFileSync(join(EXAMPLE, 'retrain.yaml'), 'utf8')
  writeFileSync(join(folder, 'retrain.yaml'), file.replace('  backends: [local]\n', '') + CAPACITY)
  writeFileSync(join(folder, '.crucibleignore'), 'home\n')
  deployment = await startOnSmallCloud(folder)
  ;({ crucible, client } = deployment)
}, 120_000)

afterAll(() => deployment?.close(), 60_000)

/** Starts a run, and waits for its end. */
async function run(number: number): Promise<RetrainResult> {
  await crucible.json('schedule', 'trigger', 'phrases')
  let runs: Run[] = []
  await until(async () => {
    ;({ runs } = await crucible.json<{ runs: Run[] }>('schedule', 'history', 'phrases'))
    return runs.length === number && runs.every(({ result }) => result !== null)
  }, RUN_LIMIT_MS)
  return runs[0]!.result!
}

const bought = async (): Promise<Bought[]> => (await deployment.ask('reservations')) as Bought[]

it('buys capacity for each run, trains in it, gives it back, and compares with the model before', async () => {
  await crucible.json('schedule', 'create', 'retrain.yaml')
  const results = [await run(1), await run(2)]
  expect(results.map(({ state, verdict }) => [state, verdict?.productionFrom])).toEqual([
    ['promoted', 'none'],
    ['promoted', 'rerun'],
  ])
  expect(results[1]!.promoted).toMatchObject({ seq: 2, previousSeq: 1 })

  const owned = await bought()
  expect(owned.map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
  const { reservations } = await crucible.json<{ reservations: ReservationStatus[] }>('reservations', 'list')
  for (const [index, { jobs, run, capacityMicroUsd, costMicroUsd }] of results.entries()) {
    const { id, tags, bill } = owned[index]!
    const held = reservations.find((one) => one.id === tags['crucible:intent'])!
    const [training] = jobs
    const { placement } = await client.get(training!.jobId)
    expect(placement!.realised).toMatchObject({ capacityType: 'reserved', reservationId: id })
    expect(training!.startedAtMs - run.dates.opensAtMs).toBeLessThan(patient(60_000))
    // Nothing of the bill is missing in the report.
    expect(bill.idleUsd * 1e6).toBeLessThanOrEqual(held.spentMicroUsd)
    expect(capacityMicroUsd).toBe(held.spentMicroUsd)
    expect(costMicroUsd).toBe(capacityMicroUsd + jobs.reduce((sum, job) => sum + (job.costMicroUsd ?? 0), 0))
  }
}, 300_000)
