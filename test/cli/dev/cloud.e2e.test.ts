import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Crucible, JobView } from '../../../client'
import { isFinal } from '../../../core/job/job'
import { spend } from '../../../core/money/meter'
import { MINUTE_MS } from '../../../core/time/time'
import { BESIDE } from '../../backends/ec2/harness'
import { testFolder } from '../../support/folders'
import { versitygwOver } from '../../support/s3'
import { until } from '../../support/until'
import { startOnSmallCloud, type OnSmallCloud } from '../on-small-cloud'
import type { CommandLine, Running } from '../process'

const STEPS = 160
const STEPS_PER_CHECKPOINT = 10

/** Steps at which the first two attempts stand still until they lose their machines. */
const HELD = [27, 85]

/** Each step hangs on all before it: what comes out is right only if none was left out or done twice. */
const CHAIN = `import hashlib, json, os, signal, sys, time
folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
resume = os.environ.get("CRUCIBLE_RESUME_FROM")
step, chain = json.load(open(resume)) if resume else (0, "")
def save():
    path = os.path.join(folder, "step-%d.json" % step)
    with open(path + ".tmp", "w") as file: json.dump([step, chain], file)
    os.replace(path + ".tmp", path)
def stop(*_):
    save()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
held = dict(enumerate(${JSON.stringify(HELD)}, 1)).get(int(os.environ["CRUCIBLE_ATTEMPT"]))
while step < ${STEPS}:
    time.sleep(0.01)
    step, chain = step + 1, hashlib.sha256((chain + str(step)).encode()).hexdigest()
    print("step %d/${STEPS}" % step, flush=True)
    if step % ${STEPS_PER_CHECKPOINT} == 0: save()
    while step == held: time.sleep(0.05)
open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "chain"), "w").write(chain)
`

const PRICES = { 'us-east-1a': 0.03, 'us-east-1b': 0.034 }
const TYPE = 'c7i.large'
const DEAR_TYPES = ['m7i.large', 'r7i.large']

/** The first zone has one machine, and once. Other types cost so much that a pool which took a machine back is still the best. */
const WORLD = {
  regions: { 'us-east-1': { zones: Object.keys(PRICES), groups: ['crucible-machine'] } },
  prices: Object.entries(PRICES).flatMap(([zone, usdPerHour]) => [
    { type: TYPE, zone, usdPerHour },
    ...DEAR_TYPES.map((type) => ({ type, zone, usdPerHour: 0.09 })),
  ]),
  stock: [
    { zone: 'us-east-1a', capacity: 'spot' as const, count: 0 },
    { zone: 'us-east-1a', type: TYPE, capacity: 'spot' as const, count: 1 },
  ],
  durations: { slotReturn: '1h' },
}

interface Instance {
  id: string
  state: string
  tags: Record<string, string>
  launchedAtMs: number
}

let deployment: OnSmallCloud
let crucible: CommandLine
let client: Crucible
let dev: Running

beforeAll(async () => {
  const folder = testFolder('dev-cloud')
  writeFileSync(join(folder, 'chain.py'), CHAIN)
  writeFileSync(join(folder, '.crucibleignore'), 'home\nworld.json\n')
  writeFileSync(join(folder, 'world.json'), JSON.stringify(WORLD))
  deployment = await startOnSmallCloud(folder, { sim: ['--sim', 'world.json'] })
  ;({ crucible, client, dev } = deployment)
}, 120_000)

afterAll(() => deployment?.close(), 60_000)

async function instances(): Promise<Instance[]> {
  return (await deployment.ask('instances')) as Instance[]
}

/** Takes the machine of an attempt back once it stands still and all its checkpoints are safe. */
async function takeBack(id: string, attempt: number, ...how: string[]): Promise<void> {
  const held = HELD[attempt - 1]!
  const isThere = ({ attempts }: JobView): boolean => {
    const { progress, checkpoint } = attempts[attempt - 1] ?? {}
    return progress?.step === held && (checkpoint?.step ?? 0) >= held - (held % STEPS_PER_CHECKPOINT)
  }
  await until(async () => isThere(await client.get(id)), 60_000)
  await crucible.json('interrupt', id, ...how)
}

/** The store's server dies, and is there again. */
async function killStore(): Promise<void> {
  const folder = join(crucible.cwd, 'home')
  const killed = versitygwOver(folder)!
  process.kill(killed, 'SIGKILL')
  await until(() => ![undefined, killed].includes(versitygwOver(folder)))
  expect(dev.stderr()).toContain("The small cloud's S3 server was ended by SIGKILL")
}

describe('a job on EC2, SSM and S3 of a small cloud', () => {
  it('lives through a machine that is taken back with notice, the death of the store, and one taken without, and is paid for rightly', async () => {
    const flags = ['--interruptible', '--max-interruptions', '5', '--duration', '10s']
    const { id } = await crucible.json<{ id: string }>('submit', 'chain.py', ...flags)
    await takeBack(id, 1, '--notice', '10s')
    await killStore()
    await takeBack(id, 2, '--without-notice')
    let view = await client.get(id)
    await until(async () => isFinal((view = await client.get(id)).state), 60_000)

    expect(view).toMatchObject({
      state: 'succeeded',
      attempts: [
        {
          state: 'interrupted',
          place: 'us-east-1a',
          restoredFrom: null,
          reason: expect.stringContaining('The provider takes the machine back'),
          stepsLost: 0,
        },
        {
          state: 'interrupted',
          place: 'us-east-1b',
          restoredFrom: { step: 27 },
          reason: expect.stringContaining('Server.SpotInstanceTermination'),
          stepsLost: 5,
        },
        { state: 'succeeded', place: 'us-east-1b', restoredFrom: { step: 80 } },
      ],
    })

    const folder = testFolder('chain-artifacts')
    await client.downloadArtifacts(id, folder)
    expect(readFileSync(join(folder, 'chain'), 'utf8')).toBe(chainOf(STEPS))
    expectPaid(view, await instances())
  }, 90_000)
})

function chainOf(steps: number): string {
  let chain = ''
  for (let step = 0; step < steps; step++)
    chain = createHash('sha256').update(`${chain}${step}`).digest('hex')
  return chain
}

/** Each attempt has had one machine, which has ended, and costs what the cloud asks for it as long as it was there. */
function expectPaid({ id, attempts, cost }: JobView, machines: Instance[]): void {
  expect(machines).toHaveLength(attempts.length)
  for (const { number, place, realised, launchedAtMs, endedAtMs, costMicroUsd } of attempts) {
    const machine = machines.find(({ tags }) => tags['crucible:attempt'] === `${id}-${number}`)!
    expect(machine).toMatchObject({ state: 'terminated', capacity: 'spot', type: TYPE, zone: place })
    const priceMicroUsdPerHour = PRICES[place as keyof typeof PRICES] * 1e6 + BESIDE
    expect(realised).toMatchObject({ capacityType: 'spot', priceMicroUsdPerHour })
    // EC2 tells the launch in whole seconds.
    expect(Math.abs(launchedAtMs! - machine.launchedAtMs)).toBeLessThan(1_000)
    const usage = { fromAtMs: launchedAtMs!, toAtMs: endedAtMs!, priceMicroUsdPerHour }
    expect(costMicroUsd).toBe(spend({ ...usage, billedAtLeastMs: MINUTE_MS }, endedAtMs!))
  }
  expect(cost.spentMicroUsd).toBe(attempts.reduce((sum, { costMicroUsd }) => sum + costMicroUsd!, 0))
}
