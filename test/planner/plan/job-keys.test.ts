import { describe, expect, it } from '@jest/globals'
import { capabilitiesOf as localCapabilitiesOf } from '../../../backends/local'
import type { PlanInput } from '../../../core/activities'
import type { JobSpec } from '../../../core/job/job'
import { EMPTY_LEDGER } from '../../../core/job/ledger'
import type { BackendAnswer, Order, Plan } from '../../../core/job/plan'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { readWritten } from '../../../intake/job-file'
import { jobFileJsonSchema } from '../../../intake/job-schema'
import { makeOrder } from '../../../planner/plan/order'
import { makePlan } from '../../../planner/plan/plan'
import { catalogAnswers } from '../catalogs'
import { NOW_MS, offer, request } from '../wishes'

/** What a key of the job file may meet: it is obeyed, named as a risk of the offer, or keeps the job away. */
type Verdict = 'obeyed' | 'told' | 'refused'

const BACKENDS = ['local', 'ec2', 'lambda', 'modal'] as const
type Verdicts = Partial<Record<(typeof BACKENDS)[number], Verdict>>

/** Each key that a machine or its provider follows, with a value, and the backends that do not obey it. */
const OF_MACHINES: Readonly<Record<string, [value: unknown, Verdicts]>> = {
  run: ['python3 other.py', {}],
  setup: ['make', {}],
  shell: ['sh', {}],
  image: ['other', { local: 'refused' }],
  'image_login.username': ['me', { local: 'refused', modal: 'told' }],
  'image_login.password': ['TOKEN', { local: 'refused', modal: 'told' }],
  inputs: [['https://example.com/a'], {}],
  'resources.gpus': [1, { local: 'refused' }],
  'resources.gpu_memory': ['24GB+', { local: 'refused' }],
  'resources.accelerators': ['H100', { local: 'refused' }],
  'resources.instance_type': ['g5.xlarge', { local: 'refused', lambda: 'refused', modal: 'refused' }],
  'resources.cpus': [2, {}],
  'resources.memory': ['2GB', {}],
  'resources.disk': ['30TB', { local: 'refused', lambda: 'refused', modal: 'refused' }],
  'resources.disk_throughput': [500, { local: 'refused', lambda: 'refused', modal: 'refused' }],
  'resources.disk_iops': [6_000, { local: 'refused', lambda: 'refused', modal: 'refused' }],
  'resources.shm': ['8GB', { local: 'refused', modal: 'told' }],
  'checkpoint.directory': ['saved', {}],
  'checkpoint.every': ['7m', {}],
  'checkpoint.complete': ['DONE', {}],
  'checkpoint.include': ['a', {}],
  'checkpoint.exclude': ['a', {}],
  'checkpoint.quiet': ['7s', {}],
  'checkpoint.signal': ['SIGUSR1', {}],
  'checkpoint.keep': [7, {}],
  on_rebalance: ['move', {}],
  regions: ['eu-west-1', { ec2: 'refused', lambda: 'refused', local: 'refused', modal: 'refused' }],
  reservation: ['cr-1', { local: 'refused', ec2: 'refused', lambda: 'refused', modal: 'refused' }],
  env: [{ A: '1' }, {}],
  secrets: [['HF_TOKEN'], {}],
  outputs: [['a'], {}],
  require_outputs: [true, {}],
  tags: [{ project: 'ranker' }, { lambda: 'told', modal: 'told' }],
}

/** Keys that the submission, the planner or the workflow follows, in the same way for every backend. */
const OF_JOBS = [
  'name',
  'script',
  'workdir',
  'duration',
  'work_family',
  'interruptible',
  'isolation',
  'accept',
  'checkpoint.size',
  'deadline',
  'budget',
  'backends',
  'reserved',
  'max_price',
  'optimize',
  'retries.failures',
  'retries.interruptions',
]

interface Node {
  properties?: Record<string, Node>
}

function leavesOf({ properties = {} }: Node, path: string[] = []): string[] {
  return Object.entries(properties).flatMap(([name, inner]) =>
    inner.properties === undefined ? [[...path, name].join('.')] : leavesOf(inner, [...path, name]),
  )
}

/** This host, without a container engine. */
function localAnswer(): BackendAnswer {
  const capabilities = localCapabilitiesOf({ capacityTypes: ['on-demand'], hasContainers: false })
  const shape = { cpus: 8, memoryGiB: 32, diskGiB: 100, gpus: 0 }
  return { backend: 'local', capabilities, offers: [offer({ backend: 'local', shape, place: 'host' })] }
}

async function placedOn(
  backend: string,
  file: Record<string, unknown>,
): Promise<{ plan: Plan; order?: Order; spec: JobSpec }> {
  const read = readWritten(file, { nowMs: NOW_MS, defaultName: 'train' })
  if (!('job' in read)) throw new Error(JSON.stringify(read.faults))
  const { spec } = read.job
  const answers = [...(await catalogAnswers(spec.resources)), localAnswer()].filter(
    (one) => one.backend === backend,
  )
  // EC2 makes each root disk as large as the job asks; its list of prices has one size.
  const { min: sizeGiB = 100 } = spec.resources.diskGiB ?? {}
  if (backend === 'ec2') for (const { shape } of answers[0]!.offers) shape.diskGiB = sizeGiB
  const asked = request([], { spec, answers })
  const plan = makePlan(asked)
  const input: PlanInput = {
    jobId: 'job-1',
    deployment: 'dep-1',
    recordSeq: 2,
    attempt: 1,
    bundle: null,
    avoid: [],
    resolved: {
      spec,
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: '',
      policy: { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 },
    },
    ledger: EMPTY_LEDGER,
  }
  const order = plan.placements.length === 0 ? undefined : makeOrder(plan, input, answers)
  return { plan, order, spec }
}

const LAST = /[^.]+$/

/** A job with the key, and the same one without it. */
function filesOf(
  key: string,
  value: unknown,
): [with_: Record<string, unknown>, without: Record<string, unknown>] {
  const without: Record<string, unknown> = { run: 'python3 train.py', interruptible: true }
  if (/^image_login|shm$/.test(key)) without['image'] = 'torch'
  if (key === 'require_outputs') without['outputs'] = ['b']
  const [parent, child] = key.split('.') as [string, string?]
  if (parent === 'image_login')
    return [{ ...without, image_login: { username: 'you', password: 'OTHER', [child!]: value } }, without]
  return [{ ...without, [parent]: child === undefined ? value : { [child]: value } }, without]
}

async function verdictOn(backend: string, key: string, value: unknown): Promise<Verdict | 'ignored'> {
  const [file, without] = filesOf(key, value)
  const { plan, order, spec } = await placedOn(backend, file)
  if (order === undefined) return 'refused'
  const name = key.startsWith('image_login') ? 'image_login' : LAST.exec(key)![0]
  if (plan.placements[0]!.risks.some((risk) => risk.includes(`\`${name}\``))) return 'told'
  const base = await placedOn(backend, without)
  const seen = (one: typeof base): string =>
    JSON.stringify([one.order, one.spec.resources, one.plan.rejections.length])
  return seen({ plan, order, spec }) === seen(base) ? 'ignored' : 'obeyed'
}

describe('a key of the job file', () => {
  it('is known to be followed by machines, or by the job in the same way everywhere', () => {
    expect(leavesOf(jobFileJsonSchema() as Node).sort()).toEqual(
      [...Object.keys(OF_MACHINES), ...OF_JOBS].sort(),
    )
  })

  it.each(Object.entries(OF_MACHINES))(
    '%s is obeyed, told or refused by each backend',
    async (key, [value, expected]) => {
      const found: Record<string, string> = {}
      for (const backend of BACKENDS) found[backend] = await verdictOn(backend, key, value)
      const all: Record<string, string> = {
        local: 'obeyed',
        ec2: 'obeyed',
        lambda: 'obeyed',
        modal: 'obeyed',
      }
      expect(found).toEqual({ ...all, ...expected })
    },
  )

  it('that no backend of a deployment can follow is refused with what to do', async () => {
    const { plan } = await placedOn('lambda', { run: 'a', resources: { disk_throughput: 500 } })
    expect(plan.placements).toEqual([])
    expect(plan.rejections[0]).toMatchObject({
      code: 'unsupported',
      reason: '`disk_throughput` cannot be set there',
    })
  })
})
