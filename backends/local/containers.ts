import { join } from 'node:path'
import type { Failure } from '../../core/failure'
import { BackendError } from '../errors'
import type { MachineMarks } from './processes'
import { runProgram } from './programs'

/** The label of a machine's container; its value is the machine's name on this host (docs/reference/runner-protocol.md). */
const CONTAINER_LABEL = 'crucible.machine'
/** A folder of the job that its container mounts at the same path (`Paths.of_job` of the runner). */
const MOUNTED = 'control'
const ENGINE_REMEDY = 'Start Docker and give this user access to it, so that `docker version` shows a server.'

const ANSWER_TIMEOUT_MS = 5_000
/** Ending a container waits until the kernel has removed its processes and mounts. */
const REMOVE_TIMEOUT_MS = 30_000

type Environment = Record<string, string>

/** Why containers cannot run, or `undefined` if they can: a client is not enough without a server that answers. */
export async function whyNoContainers(env: Environment, signal?: AbortSignal): Promise<Failure | undefined> {
  const args = ['version', '--format', '{{.Server.Version}}']
  const options = { env, timeoutMs: ANSWER_TIMEOUT_MS, signal }
  const answer = await runProgram('docker', args, options)
  if (answer.kind === 'answered' && answer.output.trim() !== '') return undefined
  const failureClass = answer.kind === 'unanswered' ? 'transient' : 'invalid'
  const why = answer.kind === 'answered' ? 'has no server' : answer.message
  return {
    class: failureClass,
    message: `containers cannot run on this host: docker ${why}`,
    hint: ENGINE_REMEDY,
  }
}

/**
 * Ends and removes a machine's containers: their processes belong to the engine and cannot be found here. If the name is only the attempt's
 * id, the folder that they mount must be the machine's too.
 */
export async function endContainers(env: Environment, { name, folders }: MachineMarks): Promise<void> {
  const folder = folders?.at(-1)
  const filters = [
    `label=${CONTAINER_LABEL}=${name}`,
    ...(folder === undefined ? [] : [`volume=${join(folder, MOUNTED)}`]),
  ]
  const ids = (await docker(env, ['ps', '-aq', ...filters.flatMap((filter) => ['--filter', filter])]))
    .split(/\s+/)
    .filter(Boolean)
  if (ids.length > 0) await docker(env, ['rm', '--force', ...ids])
}

async function docker(env: Environment, args: string[]): Promise<string> {
  const answer = await runProgram('docker', args, { env, timeoutMs: REMOVE_TIMEOUT_MS })
  if (answer.kind === 'answered') return answer.output
  throw new BackendError({
    class: 'transient',
    message: `a container cannot be removed: docker ${answer.message}`,
    hint: ENGINE_REMEDY,
  })
}
