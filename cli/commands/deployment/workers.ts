import type { Command } from 'commander'
import { workerList, type QueueLoad, type WorkerList, type WorkerProcess } from '../../../client/worker-list'
import { formatDuration } from '../../../core/time/time'
import type { Cli } from '../../cli'
import { examples } from '../../examples'
import { age, count, NOTHING } from '../../kit/words'
import type * as workerConfig from '../../../service/config'

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'Show the running workers with role, host and version, and for each task queue who serves it, how many of their slots are used, and what waits.',
    )
    .addHelpText(
      'after',
      examples(
        ['crucible workers', 'who serves which queue'],
        ['crucible workers --json | jq .queues', 'backlogs, for a monitor'],
      ),
    )
    .action(() => show(cli))
}

async function show(cli: Cli): Promise<void> {
  const { out } = cli
  const { readWorkerConfig } = require('../../../service/config') as typeof workerConfig
  const { backends } = readWorkerConfig(cli.environment)
  const list = await workerList(cli.context(), [...backends.keys()])
  out.json(list)
  if (out.isJson) return
  showWorkers(cli, list)
  showQueues(cli, list)
}

function showWorkers(cli: Cli, { workers }: WorkerList): void {
  const { out } = cli
  if (workers.length === 0)
    return out.line(
      cli.asCalled('No worker runs. Start them with `crucible worker`, or all with `crucible dev`.'),
    )
  const cells = (one: WorkerProcess): string[] => [
    one.role,
    one.host,
    String(one.pid),
    one.version || NOTHING,
    one.startedAtMs === null ? NOTHING : age(one.startedAtMs, cli.now()),
    age(one.heardAtMs, cli.now()),
    one.isStopping ? out.paint.yellow('stopping') : '',
  ]
  out.table(['ROLE', 'HOST', 'PID', 'VERSION', 'RUNNING', 'HEARD', ''], workers.map(cells), {
    right: ['PID'],
    flexible: 'HOST',
    optional: ['HEARD', 'PID'],
  })
  out.line()
}

function showQueues({ out }: Cli, { queues }: WorkerList): void {
  const cells = (load: QueueLoad): string[] => [
    load.queue,
    load.type,
    load.workers === 0 ? out.paint.red('none') : String(load.workers),
    load.slots.total === 0 ? NOTHING : `${count(load.slots.used)} of ${count(load.slots.total)}`,
    count(load.waiting),
    load.waiting === 0 ? NOTHING : formatDuration(load.oldestMs),
  ]
  out.table(['QUEUE', 'TASKS', 'WORKERS', 'BUSY', 'WAITING', 'OLDEST'], queues.map(cells), {
    right: ['WORKERS', 'BUSY', 'WAITING', 'OLDEST'],
    flexible: 'QUEUE',
    optional: ['TASKS'],
  })
}
