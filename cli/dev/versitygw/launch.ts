import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLeashed, type LeashedProcess } from '../temporal/leash'
import { freePort, LOOPBACK } from '../temporal/ports'

/** A server is up in a tenth of a second; a busy machine may take this long. */
const READY_LIMIT_MS = 30_000
const LOOK_EVERY_MS = 20

export interface VersitygwOptions {
  executable: string
  /** Buckets are folders of `<directory>/buckets`; metadata that files cannot hold is in `<directory>/metadata`. */
  directory: string
  /** Any free port if missing. */
  port?: number
  /** The only account, with full access. */
  keyId: string
  secret: string
  region: string
  onOutput?: ((line: string) => void) | undefined
  /** Aborts a start in progress. */
  signal?: AbortSignal
}

export interface Versitygw {
  /** `http://127.0.0.1:port` */
  url: string
  port: number
  process: LeashedProcess
}

/** Starts a real S3 server over a folder, which ends with this process. Throws with its last output if it does not start. */
export async function launchVersitygw(options: VersitygwOptions): Promise<Versitygw> {
  const folders = ['buckets', 'metadata'].map((name) => join(options.directory, name))
  for (const folder of folders) await mkdir(folder, { recursive: true })
  const [buckets, metadata] = folders as [string, string]
  const port = options.port ?? (await freePort())
  const process = startLeashed(
    options.executable,
    [
      '--port',
      `${LOOPBACK}:${port}`,
      '--region',
      options.region,
      '--quiet',
      '--keep-alive',
      '--access',
      options.keyId,
      '--secret',
      options.secret,
      // Extended attributes are not available everywhere.
      'posix',
      '--sidecar',
      metadata,
      buckets,
    ],
    { onOutput: options.onOutput },
  )
  const isEnded = process.exited.then(() => true)
  const waiting = performance.now()
  while (!(await answers(port))) {
    const hasEnded = await Promise.race([isEnded, sleep(LOOK_EVERY_MS, false)])
    const isGivenUp = options.signal?.aborted === true
    if (!hasEnded && !isGivenUp && performance.now() - waiting < READY_LIMIT_MS) continue
    await process.stop()
    throw new Error(
      `The S3 server ${options.executable} did not start on port ${port}; last output:\n${process.output()}`,
    )
  }
  return { url: `http://${LOOPBACK}:${port}`, port, process }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
