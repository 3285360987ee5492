import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Crucible, JobView } from '../../client'
import { isFinal } from '../../core/job/job'
import type { Report } from '../../rehearse/judge'
import { testFolder } from '../support/folders'
import { until } from '../support/until'
import { startOnSmallCloud, type OnSmallCloud } from './on-small-cloud'
import type { CommandLine, Running } from './process'
import { itInAll } from '../support/selection'

/** Saves files of one size every two seconds; with `IGNORES` it never loads what it has saved. It handles SIGTERM, which no abrupt end may send. */
const COUNT = `import json, os, signal, sys, time
folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
resume = None if os.environ.get("IGNORES") else os.environ.get("CRUCIBLE_RESUME_FROM")
step, loss = json.load(open(resume)) if resume else (0, 4.0)
def save():
    path = os.path.join(folder, "step-%05d.json" % step)
    with open(path + ".tmp", "w") as file: file.write("[%6d, %-22r]" % (step, loss))
    os.replace(path + ".tmp", path)
def stop(*_):
    print("asked to stop", flush=True)
    save()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
while step < 6000:
    time.sleep(0.05)
    step, loss = step + 1, loss * 0.999
    print("step %d/6000 loss %.6f" % (step, loss), flush=True)
    if step % 40 == 0: save()
`
const WORLD = {
  regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
  prices: [{ type: 'c7i.large', zone: 'us-east-1a', usdPerHour: 0.03 }],
}
const ON_EC2 = ['--backend', 'ec2:spot']
const BUDGET_USD = 0.5
const LIMITS = ['--budget', String(BUDGET_USD), '--for', '4m']

interface Document extends Report {
  name: string
  backend: string
  jobs: string[]
  costMicroUsd: number
  notSeen: string[]
}

let deployment: OnSmallCloud
let crucible: CommandLine
let client: Crucible

beforeAll(async () => {
  const folder = testFolder('rehearse-elsewhere')
  writeFileSync(join(folder, 'count.py'), COUNT)
  writeFileSync(join(folder, '.crucibleignore'), 'home\nworld.json\n')
  writeFileSync(join(folder, 'world.json'), JSON.stringify(WORLD))
  const settings = { CRUCIBLE_DRAIN: '12s', CRUCIBLE_POWER_OFF: '2s' }
  deployment = await startOnSmallCloud(folder, { sim: ['--sim', 'world.json'], settings })
  ;({ crucible, client } = deployment)
}, 120_000)

afterAll(() => deployment?.close(), 60_000)

/** Numbers of the machines of these jobs that are not terminated. */
async function livingMachines(jobs: readonly string[]): Promise<string[]> {
  const all = (await deployment.ask('instances')) as {
    id: string
    state: string
    tags: Record<string, string>
  }[]
  return all
    .filter(
      ({ state, tags }) => state !== 'terminated' && jobs.some((id) => Object.values(tags).includes(id)),
    )
    .map(({ id }) => id)
}

/** The rehearsal's job once its program trains. */
async function trainingJob(name: string): Promise<string> {
  let found: string | undefined
  await until(async () => {
    const [job] = await client.list({ name })
    found = job?.state === 'running' && job.progress !== null ? job.id : undefined
    return found !== undefined
  }, 60_000)
  return found!
}

async function untilOver(id: string): Promise<JobView> {
  let view = await client.get(id)
  await until(async () => isFinal((view = await client.get(id)).state), 120_000)
  return view
}

function started(name: string, ...flags: string[]): Running {
  return crucible.start(['rehearse', 'count.py', '--name', name, ...ON_EC2, ...flags, '--json'])
}

describe('a rehearsal on EC2 of the small cloud', () => {
  it('is refused without a budget, with the price and the flag to give', async () => {
    const { exitCode, stderr } = await crucible.run('rehearse', 'count.py', ...ON_EC2)
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/needs a budget: c7i\.large costs \$0\.\d+\/h now, and 30m cost at most \$0\.\d+/)
    expect(stderr).toMatch(/--budget 0\.\d\d/)
    expect(await client.list()).toEqual([])
  })

  itInAll(
    'shows that a good program survives, says what it has cost, and leaves no machine',
    async () => {
      const { exitCode, stdout, stderr } = await started('good', ...LIMITS).ended
      expect(stderr).toMatch(/Budget: \$0\.50;/)
      const report = JSON.parse(stdout) as Document
      expect({ exitCode, summary: report.summary, checks: report.checks }).toMatchObject({
        exitCode: 0,
        summary: 'This job survives: it resumed after 3 interruptions.',
      })
      expect(report.resumes).toMatchObject([
        { moment: 'after-save', manner: 'kill', isAtMoment: true, kind: 'right' },
        { moment: 'before-first-save', manner: 'kill', kind: 'right' },
        { moment: 'between-saves', manner: 'notice', isAtMoment: true, kind: 'right' },
      ])
      expect(report).toMatchObject({
        name: 'good',
        backend: 'ec2:spot',
        notSeen: [/middle/, /outside/].map(matching),
      })

      const [undisturbed, interrupted] = await Promise.all(report.jobs.map((id) => client.get(id)))
      expect(undisturbed).toMatchObject({
        name: 'good-rehearsal-undisturbed',
        isRehearsal: true,
        state: 'cancelled',
      })
      expect(interrupted).toMatchObject({
        name: 'good-rehearsal-interrupted',
        isRehearsal: true,
        state: 'cancelled',
      })
      // Not even SIGTERM was sent to the first two; the third could save.
      expect(interrupted!.attempts).toMatchObject([
        { state: 'interrupted', reason: matching(/ended without a result/) },
        { state: 'interrupted', reason: matching(/ended without a result/) },
        { state: 'interrupted', reason: matching(/The provider takes the machine back/), stepsLost: 0 },
        { state: 'stopped' },
      ])
      expect(report.costMicroUsd).toBe(undisturbed!.cost.spentMicroUsd! + interrupted!.cost.spentMicroUsd!)
      expect(undisturbed!.cost.budgetMicroUsd).toBe(BUDGET_USD * 1_000_000)
      expect(interrupted!.cost.budgetMicroUsd).toBe(BUDGET_USD * 1_000_000 - undisturbed!.cost.spentMicroUsd!)
      expect(report.costMicroUsd).toBeGreaterThan(0)
      expect(report.costMicroUsd).toBeLessThanOrEqual(BUDGET_USD * 1_000_000)
      expect(await livingMachines(report.jobs)).toEqual([])
    },
    240_000,
  )

  itInAll(
    'shows that a program which ignores its checkpoint does not survive',
    async () => {
      const { exitCode, stdout } = await started(
        'ignores',
        '--env',
        'IGNORES=1',
        '--interruptions',
        '1',
        ...LIMITS,
      ).ended
      const { survives, checks, jobs } = JSON.parse(stdout) as Document
      expect({ exitCode, survives }).toEqual({ exitCode: 8, survives: false })
      expect(checks.find(({ name }) => name === 'Right step')).toMatchObject({ outcome: 'bad' })
      expect(await livingMachines(jobs)).toEqual([])
    },
    240_000,
  )

  itInAll(
    'ends its job and its machine at Ctrl-C',
    async () => {
      const rehearsal = started('stopped', ...LIMITS)
      const id = await trainingJob('stopped-rehearsal-undisturbed')
      expect(await livingMachines([id])).toHaveLength(1)
      rehearsal.child.kill('SIGINT')
      expect((await rehearsal.ended).exitCode).toBe(130)
      expect(await client.get(id)).toMatchObject({ state: 'cancelled' })
      expect(await livingMachines([id])).toEqual([])
    },
    120_000,
  )

  itInAll(
    'is ended by the deadline of its job when its command is killed',
    async () => {
      const rehearsal = started('killed', '--budget', '0.5', '--for', '40s')
      const id = await trainingJob('killed-rehearsal-undisturbed')
      rehearsal.child.kill('SIGKILL')
      await rehearsal.ended
      expect(await untilOver(id)).toMatchObject({ state: 'failed', reason: 'deadline-reached' })
      expect(await livingMachines([id])).toEqual([])
    },
    180_000,
  )
})

function matching(pattern: RegExp): string {
  return expect.stringMatching(pattern) as unknown as string
}
