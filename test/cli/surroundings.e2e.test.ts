/** The surroundings that people start in: each command works there, or says in one sentence, before anything starts, what to change. */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import { freshNamespace } from '../support/namespace'
import { patient } from '../support/patience'
import { testVersitygw } from '../support/s3'
import { chosen, describeInAll } from '../support/selection'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { build, CommandLine, pathWithout, processesBelow } from './process'

jest.setTimeout(patient(2 * MINUTE_MS))

interface Surroundings {
  name: string
  /** The shell text before the command. */
  before?: string
  environment?: () => Record<string, string>
  /** Whether they need a user that the system does not know, which only root can become. */
  needsStranger?: true
  /** Whether `npm test` starts in them. */
  isInSelection?: true
}

/** A user id that no file of users has. */
const STRANGER = 54_321
const HOME = 'home of José'
const MAIN = join(__dirname, '..', '..', 'dist', 'cli', 'main.js')

let folder: string
let connected: TestConnection

beforeAll(async () => {
  build()
  connected = await connectTo()
})
afterAll(() => connected.close())

beforeEach(() => {
  // Other users cannot look into the folder for temporary files of the tests.
  folder = realpathSync(mkdtempSync('/tmp/crucible-around-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const noPs = (): Record<string, string> => ({ PATH: pathWithout('ps', folder) })
const proxied = (): Record<string, string> => ({
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
})
const languageC = (): Record<string, string> => ({ LANG: 'C', LC_ALL: 'C' })

/** A place of `setsid` that only this user can look into, before all others. */
function hiddenSetsid(path = process.env['PATH']!): Record<string, string> {
  const hidden = mkdtempSync(join(folder, 'mine-'))
  copyFileSync('/usr/bin/setsid', join(hidden, 'setsid'))
  return { PATH: `${hidden}:${path}` }
}

const ALL_OF_THESE = 'all of these but the user id'

const WORKS: readonly Surroundings[] = [
  { name: 'new files closed to other users', before: 'umask 077' },
  { name: 'a setsid that only this user sees', environment: hiddenSetsid },
  { name: 'no ps', environment: noPs },
  { name: 'a proxy that does not answer', environment: proxied },
  { name: 'the language C', environment: languageC },
  {
    name: 'a user id without a name',
    before: `set -- env -u HOME -u USER setpriv --reuid ${STRANGER} --regid ${STRANGER} --clear-groups "$@"`,
    needsStranger: true,
    isInSelection: true,
  },
  {
    name: ALL_OF_THESE,
    before: 'umask 077',
    environment: () => ({ ...proxied(), ...languageC(), ...hiddenSetsid(noPs()['PATH']) }),
    isInSelection: true,
  },
]

/** Whether the user without a name can run programs of this checkout. */
function canStrangerRun(): boolean {
  const words = ['--reuid', `${STRANGER}`, '--clear-groups', process.execPath, MAIN, '--version']
  return process.getuid?.() === 0 && spawnSync('setpriv', words).status === 0
}

function commandLine(
  { before = ':', environment }: Omit<Surroundings, 'name'>,
  more: Record<string, string> = {},
): CommandLine {
  const home = join(folder, HOME)
  const variables = { CRUCIBLE_HOME: join(home, '.crucible'), HOME: home, ...environment?.(), ...more }
  return new CommandLine(variables, folder, undefined, ['sh', '-c', `${before}; exec "$@"`, 'sh'])
}

/** Lays out a home and a program, and the servers where every user can run them. */
async function prepare(): Promise<Record<string, string>> {
  const servers = {
    CRUCIBLE_TEMPORAL_CLI: testServer().executable.path,
    CRUCIBLE_VERSITYGW: await testVersitygw(),
  }
  mkdirSync(join(folder, HOME))
  for (const open of [folder, join(folder, HOME)]) chmodSync(open, 0o777)
  writeFileSync(join(folder, 'hello.py'), 'print("it is", "done", flush=True)\n')
  writeFileSync(join(folder, '.crucibleignore'), '*\n!hello.py\n')
  const copies = Object.entries(servers).map(([name, path]) => {
    const copy = join(folder, name)
    copyFileSync(path, copy)
    chmodSync(copy, 0o755)
    return [name, copy] as const
  })
  return Object.fromEntries(copies)
}

/** Runs a job under `dev`, and asks `doctor` meanwhile. */
async function runJob(crucible: CommandLine, ...options: string[]): Promise<void> {
  const dev = await crucible.ready('dev', ...options)
  const followed = await crucible.run('submit', 'hello.py', '--yes', '--follow')
  expect(followed).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('it is done') })
  const { findings } = await crucible.json<{ findings: { status: string }[] }>('doctor')
  expect(findings.filter(({ status }) => status === 'error')).toEqual([])
  dev.child.kill('SIGTERM')
  expect((await dev.ended).exitCode).toBe(0)
}

describe('crucible with', () => {
  const rows = chosen(
    WORKS,
    WORKS.filter(({ isInSelection }) => isInSelection),
  )
  for (const row of rows) {
    const use = row.needsStranger && !canStrangerRun() ? it.skip : it
    use(`${row.name} runs a job under dev, and a worker`, async () => {
      const crucible = commandLine(row, await prepare())
      const namespace = await freshNamespace(connected.client.connection as never)
      const alone = commandLine(row, {
        CRUCIBLE_HOME: join(folder, HOME, 'worker'),
        TEMPORAL_ADDRESS: testServer().address,
        TEMPORAL_NAMESPACE: namespace,
      })
      try {
        await runJob(crucible)
        const worker = await alone.ready('worker')
        worker.child.kill('SIGTERM')
        expect((await worker.ended).exitCode).toBe(0)
      } finally {
        await crucible.close()
      }
    })
  }
})

describeInAll('crucible with a small cloud and', () => {
  for (const row of WORKS) {
    const use = row.needsStranger && !canStrangerRun() ? it.skip : it
    use(`${row.name} runs a job`, async () => {
      const crucible = commandLine(row, await prepare())
      try {
        await runJob(crucible, '--sim')
      } finally {
        await crucible.close()
      }
    })
  }
})

describe('crucible demo with', () => {
  const rows = chosen(
    WORKS,
    WORKS.filter(({ name }) => name === ALL_OF_THESE),
  )
  for (const row of rows) {
    const use = row.needsStranger && !canStrangerRun() ? it.skip : it
    use(`${row.name} trains on a machine, and leaves nothing when it is stopped`, async () => {
      const crucible = commandLine(row, await prepare())
      try {
        const demo = crucible.start(['demo'])
        const isTraining = (): boolean => /^Machine 1 .* at step \d+/m.test(demo.stderr())
        await until(() => isTraining() || demo.child.exitCode !== null, patient(MINUTE_MS))
        demo.child.kill('SIGINT')
        const { exitCode, stderr } = await demo.ended
        expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: expect.stringContaining('at step') })
        expect(processesBelow(folder)).toEqual([])
      } finally {
        await crucible.close()
      }
    })
  }
})

describe('crucible', () => {
  const GONE = join('/tmp', 'crucible-no-such-folder')

  it.each([
    ['dev', 2],
    ['worker', 2],
    ['demo', 2],
    ['doctor', 1],
  ])('says at once, in %s, which folder is gone', async (command, exitCode) => {
    const temporary = commandLine({ environment: () => ({ TMPDIR: GONE }) })
    const current = commandLine({ before: 'mkdir gone; cd gone; rmdir ../gone' })
    const sentences = [
      `The folder for temporary files, ${GONE}, does not exist.`,
      'The current folder does not exist.',
    ]
    for (const [index, crucible] of [temporary, current].entries()) {
      const answer = await crucible.run(command)
      expect(answer).toMatchObject({
        exitCode,
        stdout: command === 'doctor' ? expect.stringContaining(sentences[index]!.replace(/\.$/, '')) : '',
      })
      if (command !== 'doctor') expect(answer.stderr.split('\n')[0]).toContain(sentences[index])
      expect(answer.stdout + answer.stderr).not.toMatch(/ENOENT|uv_cwd|^ {4}at /m)
    }
  })
})
