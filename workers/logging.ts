import { Runtime, type Logger, type LogLevel as TemporalLevel, type LogMetadata } from '@temporalio/worker'
import { pino, type Logger as PinoLogger } from 'pino'
import { JOB_FAILED_LOG } from '../core/messages'
import { WORKFLOW_TYPES } from '../core/queues'
import type { LogLevel } from '../service/config'
import type { Monitor } from './monitor'

const LEVELS: Readonly<Record<TemporalLevel, LogLevel>> = {
  TRACE: 'debug',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
}

/** Creates a logger with one JSON object per line on standard error; `pretty` is for people at a terminal. */
export function createLogger(options: { level: LogLevel; isPretty: boolean }): PinoLogger {
  if (!options.isPretty) return pino({ level: options.level }, pino.destination(2))
  const target = 'pino-pretty'
  return pino({
    level: options.level,
    transport: { target, options: { destination: 2, ignore: 'pid,hostname' } },
  })
}

/** How often each worker reports itself to the server, which `crucible workers` reads. */
const WORKER_REPORT_MS = 15_000

/**
 * Sends Temporal's own logs, native ones included, to our logger, and its metrics to those who ask the monitor. Called once per process,
 * before any worker.
 */
export function installRuntime(logger: PinoLogger, monitor?: Monitor): void {
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: {
      logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } },
      ...(monitor !== undefined && { metrics: monitor.exporter }),
    },
    // We stop workers ourselves; the CLI handles Ctrl-C.
    shutdownSignals: [],
    workerHeartbeatInterval: WORKER_REPORT_MS,
  })
}

/** The SDK logs this warning at every start of a backend's workers, which only run activities. */
const AS_INTENDED = 'No workflows registered'

/** The SDK's message for a workflow that closed as failed. */
const WORKFLOW_FAILED = 'Workflow failed'

/**
 * Describes a job or an attempt that failed in one line, instead of the SDK's stack trace, because a person wants to know which one and why.
 * It is routine for an attempt that lost its machine. `undefined` for other messages, and for workflows that never fail on purpose.
 */
function failure(message: string, meta: LogMetadata = {}): { level: LogLevel; line: string } | undefined {
  const { workflowType, workflowId, error, reason, message: why } = meta as Record<string, unknown>
  const what = `${String(workflowId).replace(/^job\//, '')} failed`
  if (message === JOB_FAILED_LOG)
    return { level: 'warn', line: `Job ${what} (${String(reason)}): ${inOneLine(why)}` }
  if (message !== WORKFLOW_FAILED) return undefined
  const line = `${what}: ${inOneLine((error as Error).message)}`
  // A job logs its end itself.
  if (workflowType === WORKFLOW_TYPES.job) return { level: 'debug', line: `Workflow of job ${line}` }
  if (workflowType === WORKFLOW_TYPES.attempt) return { level: 'info', line: `Attempt ${line}` }
  return undefined
}

function inOneLine(text: unknown): string {
  return String(text).replace(/\s+/g, ' ')
}

/** @internal A test reads the lines that it writes. */
export function temporalLogger(logger: PinoLogger): Logger {
  const log = (level: TemporalLevel, message: string, meta?: LogMetadata): void => {
    if (message.startsWith(AS_INTENDED)) return
    const failed = failure(message, meta)
    if (failed === undefined) logger[LEVELS[level]](plain(meta), message)
    else logger[failed.level](failed.line)
  }
  return {
    log,
    trace: (message, meta) => log('TRACE', message, meta),
    debug: (message, meta) => log('DEBUG', message, meta),
    info: (message, meta) => log('INFO', message, meta),
    warn: (message, meta) => log('WARN', message, meta),
    error: (message, meta) => log('ERROR', message, meta),
  }
}

/** Nanoseconds are bigint, which JSON does not support. */
function plain(meta: LogMetadata | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(meta ?? {}).map(([key, value]) => [
      key,
      typeof value === 'bigint' ? value.toString() : (value as unknown),
    ]),
  )
}
