/** The first job of the README, command by command as it is printed, from `dev` to the end of the reader's own script; then two short pages. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { build, processesBelow } from './cli/process'
import { blocksOf } from './docs/markdown'
import { testVersitygw } from './support/s3'
import { testServer } from './support/temporal'
import { until } from './support/until'
import { patient } from './support/patience'
import { chosen } from './support/selection'

jest.setTimeout(300_000)

const ROOT = realpathSync(join(__dirname, '..'))
/** What a person needs at most, with everything installed. */
const FIRST_STEP_LIMIT_MS = patient(5 * 60_000)

const SECTION = /^## Your first job$([\s\S]*?)^## /m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))![1]!
const [[devOfCloud = ''], ...BLOCKS] = [...SECTION.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => [
  text!.trim(),
]) as [string[], ...string[][]]
/** Pages whose commands need nothing but a deployment. */
const SHORT_PAGES = ['docs/start/install.md', 'docs/reference/garbage-collection.md'].map((page) =>
  blocksOf(readFileSync(join(ROOT, page), 'utf8'), 'sh').flatMap(({ text }) => text.trim().split('\n')),
)
const devOfHost = /`(\.\/crucible dev)`/.exec(SECTION)![1]!

/** Commands that a person types: a here-document is one. */
const commandsOf = (block: string): number =>
  block
    .replace(/<<'END'[\s\S]*?^END$/gm, '')
    .split('\n')
    .filter((line) => line.trim() !== '').length

interface Shell {
  child: ChildProcess
  stdout(): string
  stderr(): string
  ended: Promise<number | null>
}

let folder: string
let versitygw: string
const running = new Set<ChildProcess>()

function shell(script: string): Shell {
  const child = spawn('bash', ['-e', '-c', script], {
    cwd: ROOT,
    env: {
      PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH']}`,
      HOME: folder,
      USER: 'tester',
      CRUCIBLE_HOME: join(folder, 'home'),
      CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
      CRUCIBLE_VERSITYGW: versitygw,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text.stdout += piece))
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (text.stderr += piece))
  running.add(child)
  const ended = new Promise<number | null>((resolve) =>
    child.on('close', (code) => {
      running.delete(child)
      resolve(code)
    }),
  )
  return { child, stdout: () => text.stdout, stderr: () => text.stderr, ended }
}

beforeAll(async () => {
  build()
  versitygw = await testVersitygw()
}, 600_000)

afterEach(async () => {
  for (const child of running) child.kill('SIGTERM')
  await until(() => running.size === 0, 60_000)
  await until(() => processesBelow(folder).length === 0, 60_000)
  rmSync(folder, { recursive: true, force: true })
})

const ON_CLOUD = ['on EC2 of the small cloud', devOfCloud, 'ec2'] as const
const ON_HOST = ['on this machine', devOfHost, 'local'] as const

describe("the README's first job", () => {
  it.each(chosen([ON_CLOUD, ON_HOST], [ON_CLOUD]))('works as printed %s', async (_where, dev, backend) => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible-readme-')))
    mkdirSync(join(folder, 'bin'))
    symlinkSync(join(ROOT, 'crucible'), join(folder, 'bin', 'crucible'))
    const startedAtMs = Date.now()
    const deployment = shell(`exec ${dev}`)
    await until(
      () => deployment.stdout().includes('Crucible is ready.') || deployment.child.exitCode !== null,
      120_000,
    )
    expect(deployment.stdout() + deployment.stderr()).toContain('Crucible is ready.')

    let output = ''
    let firstStepMs: number | undefined
    let commands = 1
    for (const [printed = ''] of BLOCKS) {
      // Only spot machines are taken back.
      const block = backend === 'ec2' ? printed : printed.replace(/^.* interrupt .*$/m, '')
      commands += commandsOf(block)
      const shown = shell(block)
      shown.child.stdout!.on('data', () => {
        if (firstStepMs === undefined && shown.stdout().includes('step 1/60'))
          firstStepMs = Date.now() - startedAtMs
      })
      expect([await shown.ended, shown.stderr()]).toEqual([0, expect.not.stringContaining('error:')])
      output += shown.stdout()
    }

    expect(firstStepMs).toBeLessThan(FIRST_STEP_LIMIT_MS)
    expect(commands).toBeLessThanOrEqual(9)
    process.stderr.write(
      `README, ${backend}: first step after ${Math.round(firstStepMs! / 1000)} s, ${commands} commands\n`,
    )
    // Every step once at least, in one log across both machines.
    expect(output).toContain('step 60/60')
    const { jobs } = JSON.parse(output.slice(output.lastIndexOf('\n{'))) as {
      jobs: { id: string; state: string; placement: { backend: string } }[]
    }
    expect(jobs).toMatchObject([
      { id: expect.stringMatching(/^train-/), state: 'succeeded', placement: { backend } },
    ])
    expect(/^1 .*interrupted/m.test(output)).toBe(backend === 'ec2')
    for (const line of SHORT_PAGES.flat()) {
      const shown = shell(line)
      expect([line, await shown.ended, shown.stderr()]).toEqual([
        line,
        0,
        expect.not.stringContaining('error:'),
      ])
    }
    deployment.child.kill('SIGINT')
    expect(await deployment.ended).toBe(0)
  })
})
