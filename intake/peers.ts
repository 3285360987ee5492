/** Files of other programs that are taken for job files: which program they are for, and how their keys are written here. */
import { stringify } from 'yaml'
import { clockTime } from './units'

/** A file of another program. */
export interface PeerFile {
  /** Completes "this is ...". */
  what: string
  /** Its keys, as they are written here; each one completes "Here, ...". */
  keys: string[]
}

/** How a key is written here, from its value; `undefined` if it keeps its name. */
type Translation = string | ((value: unknown) => string | undefined)

const NONE = 'has no equivalent'
const same = (): undefined => undefined
const ONE_MACHINE = `${NONE}: one machine runs a job`
const NO_PORTS = `${NONE}: machines accept no connections`

type Fields = Readonly<Record<string, unknown>>

/** Recognises a file of SkyPilot, dstack, Docker Compose or Kubernetes; `undefined` for any other value. */
export function peerFileOf(value: unknown): PeerFile | undefined {
  if (!isFields(value)) return undefined
  if (typeof value.apiVersion === 'string' && typeof value.kind === 'string') return kubernetes(value)
  if (isFields(value.services)) return compose(value.services)
  if (typeof value.type === 'string' && DSTACK_TYPES.includes(value.type))
    return { what: `a dstack file (type: ${value.type})`, keys: translated(value, DSTACK) }
  if (marksOfSky(value) >= 2) return { what: 'a SkyPilot file', keys: translated(value, SKYPILOT) }
  return undefined
}

/** Recognises a Kubernetes manifest with several documents, which is read as a text. */
export function peerTextOf(text: string): PeerFile | undefined {
  if (!/^apiVersion:/m.test(text) || !/^kind:/m.test(text)) return undefined
  const words = new Set(text.split(/[\s{},'"]+/))
  const keys = Object.entries(KUBERNETES).filter(([name]) => words.has(`${name}:`))
  return { what: 'a Kubernetes manifest', keys: keys.flatMap(([name, to]) => inWords(name, to, undefined)) }
}

/** Recognises a batch script of Slurm. */
export function slurmScriptOf(text: string): PeerFile | undefined {
  const lines = [...text.matchAll(/^#SBATCH\s+(--?[\w-]+)(?:[=\s]\s*(\S+))?/gm)]
  if (lines.length === 0) return undefined
  const keys = lines.flatMap(([, option = '', value]) => inWords(option, SLURM[option] ?? NONE, value))
  return { what: 'a Slurm batch script', keys: [...new Set(keys)] }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The keys of a mapping, with those of its `resources`, as they are written here. */
function translated(value: Fields, table: Readonly<Record<string, Translation>>): string[] {
  return Object.entries(value).flatMap(([name, inner]) =>
    name === 'resources' && isFields(inner)
      ? Object.entries(inner).flatMap(([of, value]) =>
          inWords(`resources.${of}`, table[`resources.${of}`] ?? NONE, value),
        )
      : inWords(name, table[name] ?? NONE, inner),
  )
}

function inWords(key: string, to: Translation, value: unknown): string[] {
  const words = typeof to === 'string' ? to : to(value)
  return words === undefined ? [] : [words.startsWith(NONE) ? `${key} ${words}` : `${key} is ${words}`]
}

/** A scalar as it is written; empty for anything else. */
function asText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : ''
}

function flow(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()
}

/** Marks of SkyPilot: two for a key that only it has. */
function marksOfSky(value: Fields): number {
  const resources = isFields(value.resources) ? value.resources : {}
  const own = ['num_nodes', 'file_mounts', 'storage_mounts'].filter((name) => name in value)
  const ownResources = SKY_RESOURCES.filter((name) => name in resources)
  const isCounted = isFields(resources.accelerators) || /:\s*\d+$/.test(asText(resources.accelerators))
  return 2 * (own.length + ownResources.length) + ('envs' in value ? 1 : 0) + (isCounted ? 1 : 0)
}

const SKY_RESOURCES = [
  'cloud',
  'infra',
  'use_spot',
  'instance_type',
  'image_id',
  'disk_size',
  'disk_tier',
  'any_of',
  'ordered',
  'job_recovery',
  'spot_recovery',
  'autostop',
]

/** `A100:8`, `{ A100: 8 }`, `[A100, H100:4]` */
function accelerators(value: unknown): string {
  const list = isFields(value)
    ? Object.entries(value).map(([name, count]) => `${name}:${asText(count) || '1'}`)
    : [value].flat()
  const pairs = list.map((one) => String(one).split(':'))
  const counts = new Set(pairs.map(([, count = '1']) => count.trim()))
  const names = pairs.map(([name = '']) => name.trim())
  const gpus = counts.size === 1 ? `, gpus: ${[...counts][0]}` : ', with the number in gpus'
  return `resources: { accelerators: ${names.length === 1 ? names[0] : flow(names)}${gpus} }`
}

const BACKENDS: Readonly<Record<string, string>> = {
  aws: 'ec2',
  lambda: 'lambda',
  modal: 'modal',
  local: 'local',
}

function backend(value: unknown): string {
  const [cloud = '', region] = String(value).split('/')
  const known = BACKENDS[cloud.toLowerCase()]
  if (known === undefined) return `${NONE} for ${cloud}: backends are ec2, lambda, modal and local`
  return `backends: ${known}${region === undefined || region === '*' ? '' : ` and regions: ${region}`}`
}

const interruptible = (value: unknown): string => `interruptible: ${value === true ? 'true' : 'false'}`
const gigabytes = (field: string) => (value: unknown) => {
  const size = /^\d+/.exec(String(value))?.[0]
  return size === undefined
    ? `resources.${field}, such as ${field}: 32GB`
    : `resources: { ${field}: ${size}GB }`
}

const SKYPILOT: Readonly<Record<string, Translation>> = {
  name: same,
  workdir: same,
  setup: same,
  run: same,
  envs: 'env',
  secrets: 'secrets, a list of names; the values come from your environment',
  file_mounts: 'inputs; the folder of the job file is sent along anyway',
  storage_mounts: 'inputs',
  num_nodes: (value) => (value === 1 ? 'not needed' : ONE_MACHINE),
  service: `${NONE}: jobs end`,
  'resources.accelerators': accelerators,
  'resources.cpus': same,
  'resources.memory': gigabytes('memory'),
  'resources.disk_size': gigabytes('disk'),
  'resources.use_spot': interruptible,
  'resources.cloud': backend,
  'resources.infra': backend,
  'resources.region': 'regions',
  'resources.zone': 'regions',
  'resources.instance_type': (value) => `resources: { instance_type: ${String(value)} }`,
  'resources.image_id': (value) => `image: ${String(value).replace(/^docker:/, '')}`,
  'resources.any_of': 'accelerators with several names, and backends',
  'resources.ordered': 'accelerators with several names; the planner ranks them',
  'resources.job_recovery': 'retries',
  'resources.spot_recovery': 'retries',
  'resources.autostop': 'not needed: a machine ends with its job',
  'resources.ports': NO_PORTS,
}

const DSTACK_TYPES = ['task', 'service', 'dev-environment', 'fleet', 'volume', 'gateway']

/** `A100:80GB:2`, `24GB`, `{ name: A100, memory: 80GB, count: 2 }` */
function dstackGpu(value: unknown): string {
  const parts = isFields(value)
    ? [value.name, value.memory, value.count].filter((part) => part !== undefined).map(String)
    : String(value).split(':')
  const fields = parts.map((part) => {
    if (/^[\d.]+\s*[GT]B/i.test(part)) return `gpu_memory: ${part}`
    return /^\d+(\.\.\d*)?$/.test(part)
      ? `gpus: ${part}`
      : `accelerators: ${part.includes(',') ? `[${part}]` : part}`
  })
  return `resources: { ${fields.join(', ')} }`
}

const DSTACK: Readonly<Record<string, Translation>> = {
  type: (value) => (value === 'task' ? 'not needed' : `${NONE}: only tasks run here`),
  name: same,
  image: same,
  backends: (value) => [value].flat().map(backend).join(', '),
  regions: same,
  max_price: same,
  commands: 'run, one command per line after "run: |"',
  env: (value) =>
    Array.isArray(value)
      ? 'env: a mapping of names to values; a name alone belongs under secrets'
      : undefined,
  python: 'image, or setup',
  working_dir: 'a cd in run',
  files: 'inputs; the folder of the job file is sent along anyway',
  repos: 'workdir',
  volumes: 'inputs and outputs',
  nodes: (value) => (value === 1 ? 'not needed' : ONE_MACHINE),
  ports: NO_PORTS,
  spot_policy: (value) => `interruptible: ${value === 'on-demand' ? 'false' : 'true'}`,
  max_duration: (value) => (typeof value === 'string' ? `deadline: ${value}` : 'deadline, such as 36h'),
  retry: 'retries',
  registry_auth: 'image_login',
  'resources.gpu': dstackGpu,
  'resources.cpu': (value) => `resources: { cpus: ${String(value)} }`,
  'resources.memory': same,
  'resources.disk': (value) => (isFields(value) ? `resources: { disk: ${String(value.size)} }` : undefined),
  'resources.shm_size': (value) => `resources: { shm: ${String(value)} }`,
}

function compose(services: Fields): PeerFile {
  const all = Object.entries(services).filter((entry): entry is [string, Fields] => isFields(entry[1]))
  const of = all.length === 1 ? '' : ` with ${all.length} services; a job is one of them`
  const keys = all.slice(0, 1).flatMap(([, service]) => translated(service, COMPOSE))
  return { what: `a Docker Compose file${of}`, keys }
}

const COMPOSE: Readonly<Record<string, Translation>> = {
  image: same,
  command: 'run',
  entrypoint: 'run',
  environment: 'env',
  env_file: 'env, or secrets for secret values',
  working_dir: 'workdir',
  build: 'image: build it, push it to a registry, and name it',
  volumes: 'inputs and outputs; the folder of the job file is sent along anyway',
  shm_size: (value) => `resources: { shm: ${String(value)} }`,
  deploy: 'resources, such as resources: { gpus: 1, memory: 32GB }',
  gpus: 'resources: { gpus: 1 }',
  ports: NO_PORTS,
  restart: 'retries',
}

function kubernetes(value: Fields): PeerFile {
  const found = new Set<string>()
  const collect = (at: unknown, depth: number): void => {
    if (typeof at !== 'object' || at === null || depth > DEPTH_MAX) return
    for (const [name, inner] of Object.entries(at)) {
      if (!Array.isArray(at)) found.add(name)
      collect(inner, depth + 1)
    }
  }
  collect(value, 0)
  const keys = Object.entries(KUBERNETES).filter(([name]) => found.has(name))
  return {
    what: `a Kubernetes manifest (kind: ${String(value.kind)})`,
    keys: keys.flatMap(([key, to]) => inWords(key, to, undefined)),
  }
}

const DEPTH_MAX = 12

const KUBERNETES: Readonly<Record<string, Translation>> = {
  image: same,
  command: 'run',
  args: 'run',
  env: 'env, a mapping of names to values',
  secretKeyRef: 'secrets',
  'nvidia.com/gpu': 'resources.gpus',
  cpu: 'resources.cpus',
  memory: 'resources.memory, such as 32GiB',
  'ephemeral-storage': 'resources.disk',
  volumes: 'inputs and outputs',
  nodeSelector: 'accelerators and regions',
  imagePullSecrets: 'image_login',
  backoffLimit: 'retries.failures',
  activeDeadlineSeconds: 'deadline',
  parallelism: ONE_MACHINE,
  schedule: '`crucible schedule`',
}

function slurmGpus(value: unknown): string {
  const parts = asText(value)
    .split(':')
    .filter((part) => part !== 'gpu')
  const count = parts.find((part) => /^\d+$/.test(part)) ?? '1'
  const model = parts.find((part) => !/^\d+$/.test(part) && part !== '')
  return `resources: { gpus: ${count}${model === undefined ? '' : `, accelerators: ${model.toUpperCase()}`} }`
}

const slurmMemory: Translation = (value) =>
  `resources: { memory: ${asText(value).replace(/([MGT])B?$/i, (_, unit: string) => `${unit.toUpperCase()}B`)} }`
const slurmName: Translation = (value) => `name: ${String(value)}`
const slurmDeadline: Translation = (value) => `deadline: ${clockTime(String(value)) ?? '12h'}`
const slurmCpus: Translation = (value) => `resources: { cpus: ${String(value)} }`
const slurmNodes: Translation = (value) => (value === '1' ? 'not needed' : ONE_MACHINE)
const LOGS = 'not needed: `crucible logs` shows the output'
const ARRAY = `${NONE}: submit one job for each task`

const SLURM: Readonly<Record<string, Translation>> = {
  '--job-name': slurmName,
  '-J': slurmName,
  '--gres': slurmGpus,
  '--gpus': slurmGpus,
  '--gpus-per-node': slurmGpus,
  '-G': slurmGpus,
  '--cpus-per-task': slurmCpus,
  '-c': slurmCpus,
  '--mem': slurmMemory,
  '--time': slurmDeadline,
  '-t': slurmDeadline,
  '--nodes': slurmNodes,
  '-N': slurmNodes,
  '--ntasks': slurmNodes,
  '-n': slurmNodes,
  '--array': ARRAY,
  '-a': ARRAY,
  '--output': LOGS,
  '-o': LOGS,
  '--error': LOGS,
  '-e': LOGS,
  '--requeue': 'interruptible: true',
  '--signal': 'checkpoint: { signal: SIGUSR1 }',
  '--constraint': 'resources.accelerators',
  '-C': 'resources.accelerators',
}
