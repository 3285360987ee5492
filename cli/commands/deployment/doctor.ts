import type { Command } from 'commander'
import { EXIT_CODES } from '../../../client/errors'
import type { Cli } from '../../cli'
import type { Finding } from '../../kit/findings'
import { examples } from '../../examples'
import { plural } from '../../kit/words'
import type * as workerConfig from '../../../service/config'
import type * as doctors from '../../deployment/doctor'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Check programs, home, store, keys, Temporal server, workers and backends. ' +
        'Each problem comes with a fix. Exits with 1 if something keeps jobs from running.',
    )
    .addHelpText(
      'after',
      examples(['crucible doctor', 'before the first job, and when something looks wrong']),
    )
    .action(() => doctor(cli))
}

async function doctor(cli: Cli): Promise<void> {
  const { out } = cli
  const { examineWorkerConfig } = require('../../../service/config') as typeof workerConfig
  const { examine } = require('../../deployment/doctor') as typeof doctors
  const { config, problems } = examineWorkerConfig(cli.environment)
  const findings = await examine({
    context: cli.context(),
    config,
    problems,
    environment: cli.environment,
    python: cli.environment.CRUCIBLE_LOCAL_PYTHON?.trim() || 'python3',
    nodeVersion: process.versions.node,
  })
  const errors = findings.filter(({ status }) => status === 'error').length
  const warnings = findings.filter(({ status }) => status === 'warning').length
  if (errors > 0) cli.exitCode = EXIT_CODES.failed
  out.json({ isHealthy: errors === 0, findings })
  for (const { remedy, ...finding } of findings) {
    out.line(lineOf(cli, finding))
    if (remedy !== undefined) out.line(`${' '.repeat(26)}${cli.asCalled(remedy)}`)
  }
  out.line()
  out.line(
    errors + warnings === 0
      ? 'No problems found.'
      : `${plural(errors, 'error')}, ${plural(warnings, 'warning')}.`,
  )
}

function lineOf(cli: Cli, { check, status, message }: Omit<Finding, 'remedy'>): string {
  const { green, yellow, red } = cli.out.paint
  const mark = { ok: green('ok     '), warning: yellow('warning'), error: red('error  ') }[status]
  return `${mark}  ${check.padEnd(15)}  ${message}`
}
