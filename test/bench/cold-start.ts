import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Connection } from '@temporalio/client'
import { makeMarkedFolder } from '../support/marked-store'
import { freshNamespace } from '../support/namespace'
import { testServer, type TestConnection } from '../support/temporal'
import { median, timed, type Measure } from './measure'

const RATIO_MAX = 2
const CLI = join(__dirname, '..', '..', 'dist', 'cli', 'main.js')
const run = promisify(execFile)

/** From the start of the process to its end, in turn with the `temporal` CLI doing the like on the same server. */
export async function coldStart(at: TestConnection, rounds: number): Promise<Measure[]> {
  const { address, executable } = testServer()
  const namespace = await freshNamespace(at.client.connection as Connection)
  const home = await mkdtemp(join(tmpdir(), 'crucible-bench-'))
  makeMarkedFolder(join(home, 'store'))
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    CRUCIBLE_HOME: home,
    NO_COLOR: '1',
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
  }
  const commands: Record<string, [string, string[]]> = {
    'crucible --help': [process.execPath, [CLI, '--help']],
    'crucible list': [process.execPath, [CLI, 'list']],
    'temporal workflow list': [executable.path, ['workflow', 'list']],
    'node, doing nothing': [process.execPath, ['-e', '0']],
  }
  const tookMs = new Map(Object.keys(commands).map((name) => [name, [] as number[]]))
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const [name, [file, args]] of Object.entries(commands)) {
        const ms = await timed(() => run(file, args, { env }))
        // The first finds no file in the system's cache.
        if (round > 0) tookMs.get(name)!.push(ms)
      }
    }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
  const baseline = median(tookMs.get('temporal workflow list')!)
  const measure = (name: string): Measure => ({
    bench: 'cold-start',
    name: `${name} against temporal workflow list`,
    unit: 'x',
    value: median(tookMs.get(name)!) / baseline,
    remark: `${Math.round(median(tookMs.get(name)!))} and ${Math.round(baseline)} ms, medians of ${rounds} in turn`,
  })
  const goal = { is: 'at most', value: RATIO_MAX } as const
  return [
    { ...measure('crucible --help'), goal },
    { ...measure('crucible list'), goal },
    // Nothing that Crucible does can be faster.
    measure('node, doing nothing'),
  ]
}
