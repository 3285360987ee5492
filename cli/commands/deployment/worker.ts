import type { Command } from 'commander'
import { CrucibleError } from '../../../client/errors'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { checkSurroundings } from '../../kit/surroundings'
import type * as workerConfig from '../../../service/config'
import type * as logging from '../../../workers/logging'
import type * as running from '../../../workers/run'
import type * as devWorkers from '../../dev/workers'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Run workers until stopped: the orchestrator, and one for each backend. Without roles, all of them. ' +
        'SIGTERM or Ctrl-C stops them gracefully, a second one immediately. Waits for the Temporal server if it is not up yet.',
    )
    .argument('[roles...]', 'orchestrator, or names of backends, such as local')
    .addHelpText(
      'after',
      examples(
        ['crucible worker', 'all roles in one process'],
        ['crucible worker orchestrator', 'only the workflows and decisions'],
        ['crucible worker local', 'only the machines of this host'],
      ),
    )
    .action((roles: string[]) => work(cli, roles))
}

async function work(cli: Cli, wanted: string[]): Promise<void> {
  checkSurroundings()
  const signal = cli.interruption()
  const { readWorkerConfig } = require('../../../service/config') as typeof workerConfig
  const { createLogger, installRuntime } = require('../../../workers/logging') as typeof logging
  const { rolesOf } = require('../../../workers/run') as typeof running
  const { openMonitor, startWorkers } = require('../../dev/workers') as typeof devWorkers
  const config = readWorkerConfig(cli.environment)
  const known = rolesOf(config)
  const unknown = wanted.filter((role) => !known.includes(role))
  if (unknown.length > 0) {
    throw new CrucibleError('usage', `Unknown role: ${unknown.join(', ')}.`, {
      hint: `Choose from ${known.join(', ')}; add backends with CRUCIBLE_BACKENDS.`,
    })
  }
  const roles = wanted.length === 0 ? known : [...new Set(wanted)]
  const logger = createLogger({ level: config.logLevel, isPretty: cli.out.stderr.isTTY === true })
  const monitor = await openMonitor(config.monitor)
  installRuntime(logger, monitor)
  try {
    const workers = await startWorkers({ config, roles, logger, signal, monitor })
    cli.out.jsonLine({
      pid: process.pid,
      roles,
      address: config.temporal.connection.address,
      metrics: monitor?.address ?? null,
    })
    cli.out.line(`Workers poll at ${config.temporal.connection.address}: ${roles.join(', ')}.`)
    signal.addEventListener('abort', () => void workers.stop().catch(() => undefined), { once: true })
    if (signal.aborted) await workers.stop()
    await workers.ended
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await monitor?.close()
  }
  // A regular stop.
  cli.exitCode = 0
}
