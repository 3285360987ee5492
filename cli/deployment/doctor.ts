import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { deploymentOfStore, hasSecretKey, missingSearchAttributes, tryStore } from '../../client/checks'
import type { Context } from '../../client/context'
import { scheduledCollection } from '../../client/deployment'
import { toCrucibleError } from '../../client/errors'
import { isUnused } from '../../client/store-trouble'
import { lastCollection } from '../../client/garbage'
import { stuckWorkflows } from '../../client/stuck'
import { pollersOf } from '../../client/workers'
import type { GarbageVerdict } from '../../core/messages'
import {
  backendQueue,
  GARBAGE_COLLECTION_SCHEDULE_ID,
  ORCHESTRATOR_QUEUE,
  watchQueue,
} from '../../core/queues'
import { plural } from '../../core/plural'
import { formatDuration, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Environment } from '../../client/config'
import type { WorkerConfig } from '../../service/config'
import { knownDeployment } from '../../service/deployment'
import { tryGrants } from '../../service/grants'
import { cachedPath, isCacheIntact } from '../dev/temporal/cache'
import { checkBackends, checkCredentials } from './doctor-backends'
import { error, ok, warning, type Finding, type CheckFinding } from '../kit/findings'
import { obstacles } from '../kit/surroundings'

export interface Patient {
  context: Context
  config: WorkerConfig
  /** Settings that cannot be read. */
  problems: string[]
  environment: Environment
  python: string
  nodeVersion: string
}

interface Check {
  name: string
  run: (patient: Examined) => Promise<CheckFinding[]>
  /** Checks that report nothing while no server answers, or the store is down. */
  needsServer?: true
  needsStore?: true
}

interface Examined extends Patient {
  storeTold: CheckFinding[]
  isStoreWell: boolean
}

/** All checks in the order of the report. Each one decides independently what is wrong and how to fix it. */
const CHECKS: readonly Check[] = [
  { name: 'surroundings', run: async () => obstacles().map(({ message, hint }) => error(message, hint)) },
  { name: 'settings', run: checkSettings },
  { name: 'Node', run: checkNode },
  { name: 'Python', run: checkPython },
  { name: 'home', run: checkHome },
  { name: 'disk', run: checkDisk },
  { name: 'store', run: async ({ storeTold }) => storeTold },
  { name: 'grants', run: checkGrants, needsStore: true },
  { name: 'secret key', run: checkSecretKey },
  { name: 'Temporal server', run: checkTemporal },
  { name: 'deployment', run: checkDeployment, needsServer: true, needsStore: true },
  { name: 'garbage', run: checkGarbage, needsServer: true },
  { name: 'workers', run: checkWorkers, needsServer: true },
  { name: 'workflows', run: checkWorkflows, needsServer: true },
  { name: 'credentials', run: checkCredentials },
  { name: 'backends', run: checkBackends },
  { name: 'cached server', run: checkCache },
]

export async function examine(patient: Patient): Promise<Finding[]> {
  const hasServer = await patient.context.temporal().then(
    () => true,
    () => false,
  )
  // A store problem is reported once, by the check of the store.
  const storeTold = await checkStore(patient).catch((thrown: unknown) => [unexpected(thrown)])
  const isStoreWell = storeTold.every(({ status }) => status !== 'error')
  const askable = CHECKS.filter(
    ({ needsServer, needsStore }) => (hasServer || !needsServer) && (isStoreWell || !needsStore),
  )
  const findings = askable.map(async ({ name, run }) => {
    const told = await run({ ...patient, storeTold, isStoreWell }).catch((thrown: unknown) => [
      unexpected(thrown),
    ])
    return told.map((each) => ({ check: name, ...each }))
  })
  return (await Promise.all(findings)).flat()
}

function unexpected(thrown: unknown): CheckFinding {
  const { message, hint = 'Fix the problem in the message, then run `crucible doctor` again.' } =
    toCrucibleError(thrown)
  return error(message, hint)
}

/** Checks the settings. Workers do not start with invalid ones; the other checks use the readable ones. */
async function checkSettings({ problems }: Patient): Promise<CheckFinding[]> {
  return problems.map((problem) => error(problem, 'Correct this setting; workers do not start with it.'))
}

const NODE_MIN = [20, 19] as const
const NODE_BELOW = 25

function isAtLeast(version: string, [wantedMajor, wantedMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
}

async function checkNode({ nodeVersion }: Patient): Promise<CheckFinding[]> {
  if (Number.parseInt(nodeVersion) < NODE_BELOW && isAtLeast(nodeVersion, NODE_MIN)) return [ok(nodeVersion)]
  const wanted = `${NODE_MIN.join('.')} to ${NODE_BELOW - 1}`
  return [
    error(`${nodeVersion}, but Crucible requires ${wanted}`, 'Install Node 24 from https://nodejs.org.'),
  ]
}

const PYTHON_MIN = [3, 8] as const

async function checkPython({ python }: Patient): Promise<CheckFinding[]> {
  const remedy = `Install Python ${PYTHON_MIN.join('.')} or newer, or set CRUCIBLE_LOCAL_PYTHON to one; only machines of this host need it.`
  try {
    const program = 'import platform; print(platform.python_version())'
    // The current folder may be gone, which says nothing about Python.
    const options = { timeout: 10 * SECOND_MS, cwd: python.includes('/') ? undefined : '/' }
    const { stdout } = await promisify(execFile)(python, ['-c', program], options)
    const version = stdout.trim()
    return [
      isAtLeast(version, PYTHON_MIN)
        ? ok(`${version} (${python})`)
        : error(`${python} is ${version}`, remedy),
    ]
  } catch {
    return [error(`${python} cannot be run`, remedy)]
  }
}

async function checkHome({ config: { home } }: Patient): Promise<CheckFinding[]> {
  const { directory } = home
  const place = await existing(directory)
  const isWritable = await access(place, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
  if (isWritable) return [ok(directory)]
  return [error(`${place} is not writable`, 'Make it writable, or choose another home with CRUCIBLE_HOME.')]
}

const DISK_LOW_GIB = 2
const GIB = 1024 ** 3

async function checkDisk({ config: { home } }: Patient): Promise<CheckFinding[]> {
  const { bavail, bsize } = await statfs(await existing(home.directory))
  const freeGiB = (bavail * bsize) / GIB
  const message = `${freeGiB.toFixed(1)} GiB free at ${home.directory}`
  if (freeGiB >= DISK_LOW_GIB) return [ok(message)]
  return [warning(message, 'Free some space: checkpoints and logs are kept there.')]
}

/** The folder, or its nearest existing parent. */
async function existing(folder: string): Promise<string> {
  const isThere = await access(folder).then(
    () => true,
    () => false,
  )
  return isThere || dirname(folder) === folder ? folder : existing(dirname(folder))
}

async function checkStore({ context }: Patient): Promise<CheckFinding[]> {
  try {
    await tryStore(context)
  } catch (thrown) {
    // A home without a key was never used.
    const isNew = isUnused(toCrucibleError(thrown)) && !(await hasSecretKey(context))
    if (!isNew) throw thrown
    return [ok(`${context.store.url} is made by \`crucible dev\` or the first worker`)]
  }
  return [ok(context.store.url)]
}

async function checkGrants({ context: { store }, config }: Patient): Promise<CheckFinding[]> {
  const tried = await tryGrants(config, store)
  if (tried === undefined) return [ok('no machine needs one')]
  const { holdForMs } = tried
  const leaseMs = Math.floor(tried.leaseMs / SECOND_MS) * SECOND_MS
  const message = `machines get credentials that are valid for ${formatDuration(holdForMs)}`
  if (tried.leaseMs === config.timing.leaseMs)
    return [ok(holdForMs === Infinity ? 'machines get keys that do not expire' : message)]
  const remedy = `Increase MaxSessionDuration of the role (one hour is the limit if the workers use a role themselves), or set CRUCIBLE_LEASE=${formatDuration(leaseMs)}.`
  if (leaseMs <= 0) return [error(`${message}, which is too short for a drain`, remedy)]
  const words = `${message}: without workers they continue for ${formatDuration(leaseMs)}, not for ${formatDuration(config.timing.leaseMs)}`
  // Workers that use a role themselves can give an hour at most; restarting them takes minutes.
  return [leaseMs < LEASE_SHORT_MS ? warning(words, remedy) : ok(words)]
}

/** Minimum time that machines should continue without workers; less is reported as a risk. */
const LEASE_SHORT_MS = 30 * MINUTE_MS

async function checkSecretKey({ context }: Patient): Promise<CheckFinding[]> {
  const path = context.config.home.secretKeyFile
  return [ok((await hasSecretKey(context)) ? path : `${path} is created at its first use`)]
}

async function checkTemporal({ context }: Patient): Promise<CheckFinding[]> {
  const { connection, namespace } = context.config.temporal
  const missing = await missingSearchAttributes(context)
  if (missing.length === 0) return [ok(`${connection.address}, namespace ${namespace}`)]
  return [
    error(
      `${connection.address} lacks the search attributes ${missing.join(', ')}`,
      'Start a worker, which adds them if it has permission; otherwise run: temporal operator search-attribute create --type Keyword --name ...',
    ),
  ]
}

async function checkDeployment({ context }: Patient): Promise<CheckFinding[]> {
  const stored = await deploymentOfStore(context)
  if (stored === undefined) return [ok('none yet; the first worker or job creates it')]
  const held = await knownDeployment(await context.temporal())
  if (held === stored) return [ok(stored)]
  const message = `the store belongs to ${stored}, Temporal holds ${held ?? 'none'}: garbage collection is off`
  const remedy =
    held === undefined
      ? 'If no worker ever ran here, start one; if the server was reset, run `crucible gc --adopt`.'
      : 'Point CRUCIBLE_STORE and TEMPORAL_ADDRESS at the same deployment, or run `crucible gc --adopt` once you are sure.'
  return [warning(message, remedy)]
}

/** Three intervals of the schedule. */
const COLLECTION_LATE_MS = 30 * MINUTE_MS

async function checkGarbage({ context }: Patient): Promise<CheckFinding[]> {
  // The check of the deployment explains a missing schedule.
  if ((await scheduledCollection(await context.temporal())) === undefined) return []
  const last = await lastCollection(context)
  if (last === undefined) return [ok('nothing collected yet')]
  const { startedAtMs, verdicts = [], problem } = last
  const agoMs = context.now() - startedAtMs
  const ended = verdicts.filter(({ action }) => action === 'ended').length
  const told: CheckFinding[] = [
    ...(problem === undefined ? [] : [warning(`the last collection failed: ${problem}`, SEE_GARBAGE)]),
    ...verdicts
      .filter(({ action }) => action === 'failed' || action === 'unseen')
      .map((each) => warning(`${wordsOf(each)}: ${each.reason}`, SEE_GARBAGE)),
  ]
  if (agoMs > COLLECTION_LATE_MS)
    told.push(
      warning(
        `no collection for ${formatDuration(agoMs)}`,
        `Start a worker, and check that the schedule ${GARBAGE_COLLECTION_SCHEDULE_ID} is not paused.`,
      ),
    )
  if (told.length > 0) return told
  return [ok(`collected ${formatDuration(agoMs)} ago: ${ended} removed, ${verdicts.length - ended} kept`)]
}

const SEE_GARBAGE = 'Run `crucible gc --dry-run` for details.'

function wordsOf({ backend, kind, id, place, description }: GarbageVerdict): string {
  return [backend, kind, id || place, description].filter((word) => word).join(' ')
}

async function checkWorkers({ context, config }: Patient): Promise<CheckFinding[]> {
  const queues: [queue: string, type: 'workflow' | 'activity', role: string][] = [
    [ORCHESTRATOR_QUEUE, 'workflow', 'orchestrator'],
    ...[...config.backends.keys()].flatMap((name): [string, 'activity', string][] => [
      [backendQueue(name), 'activity', name],
      [watchQueue(name), 'activity', name],
    ]),
  ]
  return Promise.all(
    queues.map(async ([queue, type, role]) => {
      const count = await pollersOf(context, queue, type)
      if (count > 0) return ok(`${queue} is served`)
      return error(
        `no worker polls ${queue}`,
        `Start \`crucible worker ${role}\`, or all with \`crucible dev\`.`,
      )
    }),
  )
}

async function checkWorkflows({ context }: Patient): Promise<CheckFinding[]> {
  const { stuck, lookedAt } = await stuckWorkflows(await context.temporal())
  if (stuck.length === 0) return [ok(`${plural(lookedAt, 'open workflow')}, none stuck`)]
  return stuck.map(({ message, command }) => warning(message, `If no worker continues it: ${command}`))
}

async function checkCache({ config: { home } }: Patient): Promise<CheckFinding[]> {
  const isIntact = await isCacheIntact(home.directory)
  if (isIntact === undefined) return [ok('none: it is installed at its first use')]
  const path = cachedPath(home.directory)
  if (isIntact) return [ok(path)]
  return [
    warning(
      `${path} differs from what was installed`,
      `Delete ${dirname(path)}; the next start installs it again.`,
    ),
  ]
}
