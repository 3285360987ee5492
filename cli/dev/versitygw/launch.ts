import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLeashed, type LeashedProcess } from '../temporal/leash'
import { confined, type Confinement } from './confine'

/** A server is up in a tenth of a second; a busy machine may take this long. */
const READY_LIMIT_MS = 30_000
const LOOK_EVERY_MS = 20

export interface VersitygwOptions {
  executable: string
  /** Buckets are folders of `<directory>/buckets`; metadata that files cannot hold is in `<directory>/metadata`. */
  directory: string
  /** Where it listens: the path of a socket to make, or `HOST:PORT`. */
  address: string
  /** The only account, with full access. */
  keyId: string
  secret: string
  region: string
  /** The user of its own that the server runs as; otherwise it runs as the user of this process. */
  confinement?: Confinement | undefined
  onOutput?: ((line: string) => void) | undefined
  /** Aborts a start in progress. */
  signal?: AbortSignal
}

/** Starts a real S3 server over a folder, which ends with this process. Throws with its last output if it does not start. */
export async function launchVersitygw(options: VersitygwOptions): Promise<LeashedProcess> {
  const { directory, address, confinement } = options
  for (const name of ['buckets', 'metadata']) await mkdir(join(directory, name), { recursive: true })
  const seen = confinement === undefined ? directory : '/'
  const words = [
    '--port',
    confinement?.socket ?? address,
    // Other users may not even connect to a socket.
    '--socket-perm',
    '0600',
    '--region',
    options.region,
    '--quiet',
    '--keep-alive',
    // Extended attributes are not available everywhere.
    'posix',
    // Unnamed files get their names through /proc, which its root directory does not have.
    ...(confinement === undefined ? [] : ['--disableotmp']),
    '--sidecar',
    join(seen, 'metadata'),
    join(seen, 'buckets'),
  ]
  const { program, args } =
    confinement === undefined
      ? { program: options.executable, args: words }
      : confined(confinement, directory, words)
  const process = startLeashed(program, args, {
    onOutput: options.onOutput,
    // Every user can read the arguments of a process, and only its own user the environment.
    environment: { ROOT_ACCESS_KEY_ID: options.keyId, ROOT_SECRET_ACCESS_KEY: options.secret },
  })
  const isEnded = process.exited.then(() => true)
  const waiting = performance.now()
  while (!(await answers(address))) {
    const hasEnded = await Promise.race([isEnded, sleep(LOOK_EVERY_MS, false)])
    const isGivenUp = options.signal?.aborted === true
    if (!hasEnded && !isGivenUp && performance.now() - waiting < READY_LIMIT_MS) continue
    await process.stop()
    throw new Error(
      `The S3 server ${options.executable} did not start at ${address}; last output:\n${process.output()}`,
    )
  }
  return process
}

function answers(address: string): Promise<boolean> {
  const [host = '', port] = address.split(':')
  return new Promise((resolve) => {
    const socket = connect(address.startsWith('/') ? { path: address } : { host, port: Number(port) })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
