import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { createClient, readClientConfig } from '../../client'
import type { JobView } from '../../client/job/job-view'
import { testServer } from '../support/temporal'
import { until } from '../support/until'
import { build, CommandLine, type Running } from './process'

/**
 * Counts to `STEPS`, saves every five steps, and continues from there: a training as far as Crucible sees. With `GATE`, a folder,
 * each attempt waits after its first ten steps until there is a file of its number.
 */
const TRAIN = `import json, os, signal, sys, time
steps, gate = int(os.environ.get("STEPS", "60")), os.environ.get("GATE")
folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
resume = os.environ.get("CRUCIBLE_RESUME_FROM")
first = step = json.load(open(resume)) if resume else 0
def save():
    path = os.path.join(folder, "step-%04d.json" % step)
    with open(path + ".tmp", "w") as file: json.dump(step, file)
    os.replace(path + ".tmp", path)
def stop(*_):
    save()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
print("secret of %d letters: %s" % (len(os.environ.get("TOKEN", "")), os.environ.get("TOKEN")))
while step < steps:
    step += 1
    print("step %d/%d" % (step, steps))
    if step % 5 == 0: save()
    while gate and step == first + 10 and not os.path.exists(os.path.join(gate, os.environ["CRUCIBLE_ATTEMPT"])): time.sleep(0.02)
open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "result.txt"), "w").write("counted to %d" % step)
`

/** A folder with a training script, and a `crucible dev` of its own that runs in it. */
export class Stage {
  private constructor(
    readonly folder: string,
    readonly crucible: CommandLine,
    public dev: DevProcess,
    private readonly environment: Record<string, string>,
  ) {}

  /** @param programOf path of the command line, for a package that it installs in the folder; the built one without it */
  static async set(programOf?: (folder: string) => Promise<string>): Promise<Stage> {
    build()
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-e2e-')))
    writeFileSync(join(folder, 'train.py'), TRAIN)
    writeFileSync(join(folder, '.crucibleignore'), 'home\n')
    const environment = {
      CRUCIBLE_HOME: join(folder, 'home'),
      CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
      CRUCIBLE_LOCAL_SPOT: 'yes',
      CRUCIBLE_LOCAL_SLOTS: '8',
      CRUCIBLE_LOCAL_PRICE: '4',
      CRUCIBLE_LOCAL_SPOT_PRICE: '1',
      TOKEN: 'abcdefgh',
    }
    const crucible = new CommandLine(environment, folder, await programOf?.(folder))
    return new Stage(folder, crucible, await crucible.ready('dev'), environment)
  }

  close(): Promise<void> {
    return this.crucible.close()
  }

  /** As somebody with Temporal's own tools. */
  async temporal<T>(does: (client: Client) => Promise<T>): Promise<T> {
    const connection = await Connection.connect({ address: String(this.dev.document['address']) })
    try {
      return await does(new Client({ connection }))
    } finally {
      await connection.close()
    }
  }

  /** A folder for `GATE` that only attempts of these numbers get past. */
  gate(...open: number[]): string {
    const path = mkdtempSync(join(this.folder, 'home', 'gate-'))
    for (const attempt of open) writeFileSync(join(path, String(attempt)), '')
    return path
  }

  async submit(...flags: string[]): Promise<string> {
    const args = ['submit', 'train.py', '--interruptible', '--max-interruptions', '5', ...flags]
    return (await this.crucible.json<{ id: string }>(...args)).id
  }

  show(id: string): Promise<JobView> {
    return this.crucible.json<JobView>('show', id)
  }

  /** Asks through the TypeScript API, which is quicker than a process for each look. */
  async untilShown(meant: string, isSo: (view: JobView) => boolean): Promise<JobView> {
    const client = createClient(readClientConfig(this.environment))
    try {
      const id = await client.find(meant)
      let view = await client.get(id)
      await until(async () => isSo((view = await client.get(id))), 60_000).catch((error: unknown) => {
        throw new Error(`it stayed so: ${JSON.stringify(view, null, 1)}`, { cause: error })
      })
      return view
    } finally {
      await client.close()
    }
  }
}

type DevProcess = Running & { document: Record<string, unknown> }

export const isOver = ({ state }: JobView): boolean => ['succeeded', 'failed', 'cancelled'].includes(state)

export const hasSaved = (attempt: number) => (view: JobView) =>
  view.attempts.some(
    ({ number, checkpoint, state }) => number === attempt && state === 'running' && checkpoint !== null,
  )
