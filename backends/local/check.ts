import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SHARED_USER, SHARED_USER_REMEDY } from '../../core/shared-user'
import type { CallContext, Problem } from '../backend'
import { hasCode, localError } from './errors'
import type { Host } from './host'
import { isUserShared, USERS_REMEDY } from './job-users'
import { diskOf } from './offers'
import { PYTHON_REMEDY, findPython } from './python'
import { namesIn, readMachine, type Paths } from './records'

/** Below this, a bundle, a checkpoint and its copy for the upload may not fit. */
const DISK_LOW_GIB = 2

/** Problems of machines on this host, worst first. Read-only. */
export async function check(host: Host, ctx: CallContext): Promise<Problem[]> {
  const problems = await Promise.all([
    checkPython(host, ctx),
    checkRoot(host),
    checkGpus(host, ctx),
    checkUsers(host, ctx),
  ])
  return problems.flat().sort((a, b) => a.severity.localeCompare(b.severity))
}

async function checkPython({ config }: Host, ctx: CallContext): Promise<Problem[]> {
  const found = await findPython(config.python, config.environment, ctx.signal)
  if (found.kind === 'usable') return []
  const { failure } = found
  return [{ severity: 'error', message: failure.message, remedy: PYTHON_REMEDY, failure: failure.class }]
}

async function checkRoot({ paths }: Host): Promise<Problem[]> {
  try {
    await assertWritable(paths.root)
    const { freeGiB } = await diskOf(paths.root)
    return [...lowDisk(paths.root, freeGiB), ...(await damagedMachines(paths))]
  } catch (error) {
    const { class: failure, message, hint } = localError(error).failure
    const remedy = hint ?? 'Set CRUCIBLE_LOCAL_ROOT to a directory that this user can write to.'
    return [
      {
        severity: 'error',
        message: `machines cannot be created in ${paths.root}: ${message}`,
        remedy,
        failure,
      },
    ]
  }
}

/** A missing directory can be created if its nearest existing parent is writable. */
async function assertWritable(directory: string): Promise<void> {
  try {
    if (!(await stat(directory)).isDirectory()) {
      throw Object.assign(new Error(`${directory} is not a directory`), { code: 'ENOTDIR' })
    }
    await access(directory, constants.W_OK | constants.X_OK)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    await assertWritable(dirname(directory))
  }
}

function lowDisk(root: string, freeGiB: number): Problem[] {
  if (freeGiB >= DISK_LOW_GIB) return []
  const message = `only ${freeGiB.toFixed(1)} GiB are free on the disk of ${root}`
  return [
    {
      severity: 'warning',
      message,
      remedy: 'Free some space, or set CRUCIBLE_LOCAL_ROOT to a larger disk.',
      failure: 'capacity',
    },
  ]
}

async function damagedMachines(paths: Paths): Promise<Problem[]> {
  const problems = (await namesIn(paths.machines)).map(async (id): Promise<Problem[]> => {
    try {
      const isMachine = (await readMachine(paths, id)) !== undefined
      if (isMachine) return []
      const message = `${join(paths.machines, id)} is not a machine's directory`
      return [{ severity: 'warning', message, remedy: 'Check its contents, then delete it.' }]
    } catch (error) {
      const { message, hint } = localError(error).failure
      return [{ severity: 'warning', message, remedy: hint ?? 'Check its contents, then delete it.' }]
    }
  })
  return (await Promise.all(problems)).flat()
}

async function checkUsers(host: Host, ctx: CallContext): Promise<Problem[]> {
  const users = await host.jobUsers(ctx.signal)
  if (users.kind === 'refused') {
    const message = `jobs cannot run as separate users: ${users.why}`
    return [{ severity: 'error', message, remedy: USERS_REMEDY, failure: 'invalid' }]
  }
  if (!isUserShared(users)) return []
  if (users.kind !== 'off' || users.why === undefined)
    return [{ severity: 'warning', message: SHARED_USER, remedy: SHARED_USER_REMEDY }]
  const message = `jobs without an image run as root and can read everything that workers can: ${users.why}`
  return [{ severity: 'warning', message, remedy: USERS_REMEDY }]
}

async function checkGpus(host: Host, ctx: CallContext): Promise<Problem[]> {
  const { trouble } = await host.gpus(ctx.signal)
  if (trouble === undefined) return []
  const remedy =
    'Fix the driver so that `nvidia-smi` lists every GPU; until then jobs only get the listed ones.'
  return [{ severity: 'warning', message: trouble, remedy }]
}
