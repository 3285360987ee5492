import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { until } from '../support/until'
import { build, CommandLine, processesBelow } from './process'

const PROGRAMS = join(__dirname, '..', 'rehearse', 'programs')
const LIMIT_MS = 120_000

const folder = mkdtempSync(join(tmpdir(), 'crucible-rehearse-cli-'))
/** Where the command keeps what it removes again. */
const temporary = join(folder, 'tmp')
const quickly = { CRUCIBLE_HOME: join(folder, 'home'), TMPDIR: temporary, CRUCIBLE_CHECKPOINT_QUIET: '0.3s' }
const crucible = new CommandLine(quickly, folder)

beforeAll(() => {
  build()
  mkdirSync(temporary)
}, LIMIT_MS)
afterAll(() => crucible.close())

/** A job file of a folder of its own, for a program of `test/rehearse/programs`. */
function jobOf(program: string, before = ''): string {
  const code = mkdtempSync(join(folder, 'code-'))
  for (const name of ['training.py', `${program}.py`]) copyFileSync(join(PROGRAMS, name), join(code, name))
  const file = join(code, 'job.yaml')
  writeFileSync(file, `name: trial\nrun: ${before}exec python3 -B ${program}.py\n`)
  return file
}

describe('crucible rehearse', () => {
  it(
    'prints a document for CI, and 0 for a job that survives',
    async () => {
      const args = ['rehearse', jobOf('good'), '--interruptions', '2', '--json']
      const { exitCode, stdout } = await crucible.run(...args)
      const told = JSON.parse(stdout) as { checks: { outcome: string }[] } & Record<string, unknown>
      expect(told.checks.filter(({ outcome }) => outcome !== 'good')).toEqual([])
      expect(told).toEqual({
        schema: 'crucible/1',
        name: 'trial',
        survives: true,
        summary: expect.any(String),
        changes: [],
        checks: expect.arrayContaining([
          { name: 'Resumes', outcome: 'good', text: expect.any(String) },
          { name: 'Right step', outcome: 'good', text: expect.any(String) },
        ]),
        checkpoint: {
          files: [expect.any(String)],
          sizeBytes: 20_000,
          state: 'complete',
          evidence: expect.any(String),
          saveMs: expect.any(Number),
          intervalMs: expect.any(Number),
        },
        resumes: [expect.any(Object), expect.any(Object)],
        tookMs: expect.any(Number),
      })
      const [, second] = told['resumes'] as Record<string, unknown>[]
      expect(second).toEqual({
        attempt: 2,
        moment: 'during-save',
        manner: 'kill',
        isAtMoment: expect.any(Boolean),
        kind: 'right',
        restoredStep: expect.any(Number),
        restoredState: expect.any(String),
        firstStep: expect.any(Number),
        hasGoneOn: true,
        stepsBack: 0,
        torn: null,
        lostSteps: expect.any(Number),
        lostMs: expect.any(Number),
      })
      expect(exitCode).toBe(0)
    },
    LIMIT_MS,
  )

  it('ends with 8 for a job that does not survive, and says what to change', async () => {
    const { exitCode, stdout } = await crucible.run('rehearse', jobOf('fails_at_once'), '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      survives: false,
      checkpoint: null,
      resumes: [],
      checks: [{ name: 'Runs undisturbed', outcome: 'bad' }],
      changes: [{ text: expect.any(String), yaml: null, line: null }],
    })
    expect(exitCode).toBe(8)
  })

  it(
    'leaves neither a process nor a file at Ctrl-C',
    async () => {
      const sign = join(folder, 'has-begun')
      const running = crucible.start(['rehearse', jobOf('good', `touch ${sign}; `)])
      await until(() => existsSync(sign), LIMIT_MS)
      running.child.kill('SIGINT')
      const { exitCode } = await running.ended
      expect(exitCode).toBe(130)
      await until(() => processesBelow(temporary).length === 0)
      expect(readdirSync(temporary)).toEqual([])
    },
    LIMIT_MS,
  )
})
