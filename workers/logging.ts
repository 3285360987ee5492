import { Runtime, type Logger, type LogLevel as TemporalLevel, type LogMetadata } from '@temporalio/worker'
import { pino, type Logger as PinoLogger } from 'pino'
import { WORKFLOW_TYPES } from '../core/queues'
import type { LogLevel } from './config'

const LEVELS: Readonly<Record<TemporalLevel, LogLevel>> = {
  TRACE: 'debug',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
}

/** One JSON object a line, on standard error; `pretty` for people at a terminal. */
export function createLogger(options: { level: LogLevel; isPretty: boolean }): PinoLogger {
  if (!options.isPretty) return pino({ level: options.level }, pino.destination(2))
  const target = 'pino-pretty'
  return pino({
    level: options.level,
    transport: { target, options: { destination: 2, ignore: 'pid,hostname' } },
  })
}

/** Once per process, before any worker: Temporal's own logs, native ones too, go where ours go. */
export function installRuntime(logger: PinoLogger): void {
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: { logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } } },
    // Workers stop when we tell them; the CLI has its own idea of Ctrl-C.
    shutdownSignals: [],
  })
}

/** What the SDK warns of at every start of a backend's workers, which do activities only. */
const AS_INTENDED = 'No workflows registered'

/**
 * One line for a workflow that closed as failed, instead of the SDK's stack trace: a person wants to know which job and why. That an
 * attempt lost its machine is routine. `undefined` for workflows that never fail as intended.
 */
function failedWorkflow(meta: LogMetadata = {}): { level: LogLevel; line: string } | undefined {
  const { workflowType, workflowId, error } = meta as Record<string, unknown>
  const { message = '', type } = error as { message?: string; type?: unknown }
  const what = `${String(workflowId).replace(/^job\//, '')} failed`
  const why = message.replace(/\s+/g, ' ')
  if (workflowType === WORKFLOW_TYPES.job)
    return { level: 'warn', line: `Job ${what} (${String(type)}): ${why}` }
  if (workflowType === WORKFLOW_TYPES.attempt) return { level: 'info', line: `Attempt ${what}: ${why}` }
  return undefined
}

export function temporalLogger(logger: PinoLogger): Logger {
  const log = (level: TemporalLevel, message: string, meta?: LogMetadata): void => {
    if (message.startsWith(AS_INTENDED)) return
    const failed = message === 'Workflow failed' ? failedWorkflow(meta) : undefined
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

/** Nanoseconds come as bigint, which JSON does not know. */
function plain(meta: LogMetadata | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(meta ?? {}).map(([key, value]) => [
      key,
      typeof value === 'bigint' ? value.toString() : (value as unknown),
    ]),
  )
}
