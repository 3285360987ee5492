import { SEARCH_ATTRIBUTES } from '../../../core/queues'
import { checkDataFileVersion, recordDataFileVersion, startAfresh } from './data-file'
import { TemporalServerError } from './errors'
import { describeExit, startLeashed, withOutput, type LeashedProcess } from './leash'
import { LOOPBACK, type Ports } from './ports'
import { waitUntilReady } from './ready'
import type { TemporalVersion } from './version'

export const DEV_NAMESPACE = 'default'

/** A server is up within a second; a busy machine may take this long. */
const READY_LIMIT_MS = 60_000

export interface LaunchOptions {
  executable: TemporalVersion & { path: string }
  /** Keeps the state between runs; without it the state is in memory and ends with the server. */
  dataFile?: string | undefined
  /** Lets a workflow's own clock skip the waits, for tests. */
  isTimeSkippingEnabled?: boolean | undefined
  /** Receives each line that the server prints: mostly errors. */
  onOutput?: ((line: string) => void) | undefined
}

/** The command line of the server, without the executable. @internal Tests start servers of their own. */
export function serverArguments(
  ports: Ports,
  { dataFile, isTimeSkippingEnabled }: Omit<LaunchOptions, 'executable'>,
): string[] {
  // Readers do not wait for the writer, and commits do not wait for the disk: after a power failure the file is sound, but
  // slightly old.
  const pragmas = dataFile === undefined ? [] : ['journal_mode=WAL', 'synchronous=NORMAL']
  // Later servers use the second name; each server ignores the other's.
  const timeSkipping = [
    'frontend.WorkflowTimeSkippingEnabled=true',
    'system.workflowTimeSkippingEnabled=true',
  ]
  // Number of partitions. The default of four per task queue takes a fifth of the server's processor time. A data file may have tasks in
  // each of them.
  const partitions =
    dataFile === undefined
      ? ['matching.numTaskqueueReadPartitions=1', 'matching.numTaskqueueWritePartitions=1']
      : []
  // The server sums up the metrics of each task queue every second.
  const metrics = ['metrics.breakdownByTaskQueue=false', 'metrics.breakdownByPartition=false']
  return [
    'server',
    'start-dev',
    '--ip',
    LOOPBACK,
    '--log-level',
    'error',
    '--port',
    String(ports.grpc),
    '--ui-port',
    String(ports.ui),
    ...repeat('--ui-ip', ports.uiHost === undefined ? [] : [ports.uiHost]),
    // The HTTP API cannot be disabled. It accepts requests of web pages from any origin, so it is closed to every host.
    '--dynamic-config-value',
    'frontend.httpAllowedHosts=["closed.invalid"]',
    // Without this flag the Web UI contacts a news service.
    '--ui-disable-news-fetch',
    ...repeat(
      '--search-attribute',
      Object.values(SEARCH_ATTRIBUTES).map((name) => `${name}=Keyword`),
    ),
    ...repeat('--db-filename', dataFile === undefined ? [] : [dataFile]),
    ...repeat('--sqlite-pragma', pragmas),
    ...repeat('--dynamic-config-value', [
      ...partitions,
      ...metrics,
      ...(isTimeSkippingEnabled === true ? timeSkipping : []),
    ]),
  ]
}

function repeat(flag: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [flag, value])
}

/**
 * Starts one server process. `onStarted` receives its process id immediately; the promise resolves when the server answers for
 * its namespace, and rejects with the cause when the process ends first.
 */
export async function launchServer(
  ports: Ports,
  options: LaunchOptions,
  { onStarted, signal }: { onStarted: (pid: number) => void; signal: AbortSignal },
): Promise<LeashedProcess> {
  const { dataFile, executable } = options
  if (dataFile !== undefined) checkDataFileVersion(dataFile, executable)
  const server = startLeashed(executable.path, serverArguments(ports, options), {
    onOutput: options.onOutput,
  })
  const limit = AbortSignal.timeout(READY_LIMIT_MS)
  const waiting = new AbortController()
  const ready = waitUntilReady({
    port: ports.grpc,
    namespace: DEV_NAMESPACE,
    searchAttributes: Object.values(SEARCH_ATTRIBUTES),
    signal: AbortSignal.any([waiting.signal, limit, signal]),
  })
  try {
    onStarted(server.pid)
    const exit = await Promise.race([ready, server.exited])
    if (exit !== undefined) throw startFailure(describeExit(exit), server.output(), options)
    if (dataFile !== undefined) recordDataFileVersion(dataFile, executable)
    return server
  } catch (error) {
    waiting.abort()
    await Promise.allSettled([ready, server.stop()])
    if (!limit.aborted) throw error
    throw startFailure(`did not answer within ${READY_LIMIT_MS / 1_000} seconds`, server.output(), options)
  }
}

function startFailure(
  what: string,
  output: string,
  { executable, dataFile }: LaunchOptions,
): TemporalServerError {
  const message = `The Temporal server ${executable.path} ${withOutput(what, output)}`
  if (output.includes('address already in use')) {
    return new TemporalServerError(
      'port-taken',
      `${message}\nStop the program that has the port, or choose another.`,
    )
  }
  if (dataFile !== undefined && /not a database|no such (table|column)|malformed/.test(output)) {
    return new TemporalServerError(
      'data-file',
      `${message}\n${dataFile} cannot be used. ${startAfresh(dataFile)}`,
    )
  }
  return new TemporalServerError('start-failed', message)
}
