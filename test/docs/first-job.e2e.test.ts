/** The shell blocks of pages that need nothing but `crucible dev --sim`, as they are printed. */
import { spawn, type ChildProcess } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { JobView } from '../../client'
import { build, processesBelow } from '../cli/process'
import { testVersitygw } from '../support/s3'
import { testServer } from '../support/temporal'
import { until } from '../support/until'
import { blocksOf } from './markdown'

jest.setTimeout(600_000)

const ROOT = realpathSync(join(__dirname, '..', '..'))
const PATIENCE_MS = 180_000
const linesOf = (page: string): string[] =>
  blocksOf(readFileSync(join(ROOT, page), 'utf8'), 'sh').flatMap(({ text }) => text.trim().split('\n'))

/** A training that lasts until it is cancelled, for all that this test needs, and saves every two seconds. */
const TRAIN = `import os, time
folder, resume = os.environ["CRUCIBLE_CHECKPOINT_DIR"], os.environ.get("CRUCIBLE_RESUME_FROM")
step = int(open(resume).read()) if resume else 0
while True:
    step += 1
    time.sleep(0.25)
    print(f"step {step}/100000", flush=True)
    if step % 8 == 0:
        with open(f"{folder}/new.tmp", "w") as file:
            file.write(str(step))
        os.replace(f"{folder}/new.tmp", f"{folder}/step-{step}")
`

interface Shown {
  code: number | null
  stdout: string
  stderr: string
}

let folder: string
let environment: Record<string, string | undefined>
let dev: ChildProcess

function start(line: string): { child: ChildProcess; shown: Promise<Shown>; soFar: { stdout: string } } {
  const child = spawn('bash', ['-e', '-c', line], {
    cwd: ROOT,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const soFar = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (soFar.stdout += piece))
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (soFar.stderr += piece))
  const shown = new Promise<Shown>((resolve) => child.on('close', (code) => resolve({ code, ...soFar })))
  return { child, shown, soFar }
}

async function run(line: string): Promise<string> {
  const { code, stdout, stderr } = await start(line).shown
  expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: expect.not.stringContaining('error:') })
  return stdout
}

const view = async (job: string): Promise<JobView> =>
  JSON.parse(await run(`crucible show ${job} --json`)) as JobView

beforeAll(async () => {
  build()
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-docs-')))
  mkdirSync(join(folder, 'bin'))
  symlinkSync(join(ROOT, 'crucible'), join(folder, 'bin', 'crucible'))
  environment = {
    PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
    HOME: folder,
    USER: 'tester',
    CRUCIBLE_HOME: join(folder, 'home'),
    CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
    CRUCIBLE_VERSITYGW: await testVersitygw(),
  }
  const started = start('exec crucible dev --sim')
  dev = started.child
  await until(() => started.soFar.stdout.includes('Crucible is ready.') || dev.exitCode !== null, PATIENCE_MS)
  expect(started.soFar.stdout).toContain('Crucible is ready.')
}, 600_000)

afterAll(async () => {
  dev?.kill('SIGINT')
  await until(() => processesBelow(folder).length === 0, PATIENCE_MS)
  rmSync(folder, { recursive: true, force: true })
}, 200_000)

describe('the pages', () => {
  it('take a first job through an interruption to its results', async () => {
    let output = ''
    for (const line of linesOf('docs/start/first-job.md')) output += await run(line)
    expect(output).toMatch(/^1 .*interrupted/m)
    const { state, recoveries } = await view('char-lm')
    expect([state, recoveries.length]).toEqual(['succeeded', 1])
    expect(existsSync(join(folder, 'char-lm-results', 'weights.json'))).toBe(true)
  })

  it('move, extend, stop and continue a job', async () => {
    mkdirSync(join(folder, 'moving'))
    writeFileSync(join(folder, 'moving', 'train.py'), TRAIN)
    const hasSavedIn = async (attempts: number): Promise<boolean> => {
      const job = await view('moving')
      return job.attempts.length === attempts && job.checkpoints !== null && job.state === 'running'
    }
    const { id } = JSON.parse(
      await run(`cd ~/moving && crucible submit train.py --name moving --interruptible --json`),
    ) as { id: string }
    await until(() => hasSavedIn(1), PATIENCE_MS)
    for (const line of linesOf('docs/guides/moving-jobs.md')) {
      // The page's reader waits for what a command has asked for, too.
      if (line.includes('--from'))
        await until(async () => (await view(id)).state === 'cancelled', PATIENCE_MS)
      await run(line)
      if (line.includes('migrate')) await until(() => hasSavedIn(2), PATIENCE_MS)
    }
    const first = await view(id)
    expect(first.attempts.map(({ reason }) => reason)).toEqual(['migrated', expect.stringMatching(/cancel/)])
    expect(first.cost.budgetMicroUsd).toBe(40_000_000)
    await until(async () => (await view('moving')).state === 'running', PATIENCE_MS)
    const next = await view('moving')
    expect(next.id).not.toBe(id)
    expect(next.attempts[0]!.restoredFrom).not.toBeNull()
    await run('crucible cancel --now moving')
  })
})
