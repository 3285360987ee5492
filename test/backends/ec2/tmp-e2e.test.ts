import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it, expect } from '@jest/globals'
import { startCloud } from '../../../sim'
import { createMachine } from '../../../sim/machines/machine'
import { createEc2Backend } from '../../../backends/ec2'
import { FileStore } from '../../../storage/file-store'
import { layout } from '../../../storage/layout'
import { until } from '../../support/until'
import { patiently, settled } from '../harness'
import { issueOrder, makeOrder } from '../orders'
import { CONFIG } from './harness'
import { useRealRunner } from '../local/runners'

const runner = useRealRunner()
it('runs the real runner', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'crucible-e2e-'))
  const store = new FileStore(join(dir, 'store'), Date.now)
  const body = readFileSync(runner())
  const sha = createHash('sha256').update(body).digest('hex')
  await store.put(layout.runner(sha), body)
  const at = (ms: number): [number, number] => [ms, ms]
  const cloud = await startCloud({
    directory: join(dir, 'machines'),
    createMachine: (spec) => createMachine({ ...spec, enclosure: 'groups' }),
    world: {
      durations: { pending: at(30), boot: at(10), register: at(10), shuttingDown: at(30) },
      regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
      roles: { 'crucible-machine': { managed: ['AmazonSSMManagedInstanceCore'], hasProfile: true, trusts: ['ec2.amazonaws.com'] } },
    },
  })
  process.env['AWS_ACCESS_KEY_ID'] = 'test'
  process.env['AWS_SECRET_ACCESS_KEY'] = 'test'
  const backend = await createEc2Backend(
    { ...CONFIG, endpoint: cloud.endpoint, types: ['g5.xlarge'], image: '/aws/service/deeplearning/ami/{arch}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id' },
    { clock: Date.now, runnerUrl: (s) => store.readUrl(layout.runner(s), 1000), secretKeyOf: () => 'ab'.repeat(32) },
  )
  const life = async (run: string, act?: (id: string) => void) => {
    const offers = (await backend.offers({}, patiently())).filter((o) => o.capacityType === 'spot')
    const order = makeOrder({ store, offers, run, runnerSha256: sha, runner: { notice: { kind: 'instance-metadata' } }, timing: { beatMs: 300, drainMs: 3000 } })
    await issueOrder(store, order, Date.now())
    const outcome = await backend.launch(order, patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    await until(async () => (await settled(backend.start!(outcome.handle, order, patiently()))) === 'answer')
    if (act) { await until(async () => ((await store.get(layout.beat(order.jobId, 1))) ?? '').includes('"running"')); act(outcome.handle.id) }
    try {
      await until(async () => (await store.get(layout.result(order.jobId, 1))) !== undefined)
    } catch (e) { console.log((await backend.logs!(outcome.handle, undefined, patiently())).text); throw e }
    await until(async () => (await backend.observe([outcome.handle], patiently()))[0]!.state === 'gone')
    return [JSON.parse(String(await store.get(layout.result(order.jobId, 1)))).reason, (await backend.observe([outcome.handle], patiently()))[0]]
  }
  console.log(await life('echo hello'))
  console.log(await life('sleep 100', (id) => cloud.interrupt(id, { noticeMs: 3000 })))
  await cloud.stop()
  rmSync(dir, { recursive: true, force: true })
  expect(1).toBe(1)
}, 90_000)
