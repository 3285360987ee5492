import { mkdir, mkdtemp, rm, writeFile, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Context } from '../../../client/context'
import { heldSchedule } from '../../../client/retraining/schedule-handles'
import {
  listSchedules,
  pauseSchedule,
  resumeSchedule,
  showSchedule,
  triggerSchedule,
} from '../../../client/retraining/schedule-runs'
import {
  backfill,
  createSchedule,
  deleteSchedule,
  renewSecrets,
  updateSchedule,
  type ScheduleSubmission,
} from '../../../client/retraining/schedules'
import { CATCH_UP_MS } from '../../../core/retraining/schedule-dates'
import { nextRuns } from '../../../core/retraining/run-dates'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { parseRetrainFile } from '../../../intake/retrain'
import { layout } from '../../../storage/layout'
import { openSecrets, readDeploymentKey, scheduleKey } from '../../../storage/secrets'
import { readPauses, readPermits } from '../../../storage/schedule-permits'
import { readRevisions } from '../../../storage/schedules'
import { makeMarkedFolder } from '../../support/marked-store'
import { freshNamespace } from '../../support/namespace'
import { patient } from '../../support/patience'
import { connectTo, testServer, type TestConnection } from '../../support/temporal'
import { until } from '../../support/until'

jest.setTimeout(patient(60_000))

let at: TestConnection
let folder: string
let context: Context
const environment: Record<string, string> = { HF_TOKEN: 'first' }

beforeAll(async () => {
  at = await connectTo()
  folder = await mkdtemp(join(tmpdir(), 'crucible-schedules-'))
  await mkdir(join(folder, 'code'))
  await writeFile(join(folder, 'code', 'train.py'), 'print("x")\n')
  makeMarkedFolder(join(folder, 'store'))
  const namespace = await freshNamespace(at.client.connection as never)
  context = new Context(
    {
      home: {
        directory: join(folder, 'home'),
        storeUrl: pathToFileURL(join(folder, 'store')).href,
        secretKeyFile: join(folder, 'home', 'secret.key'),
      },
      temporal: { connection: { address: testServer().address }, namespace },
      temporalUiUrl: 'http://ui',
      owner: 'ada',
      environment,
    },
    Date.now,
  )
})
afterAll(async () => {
  await context.close()
  await at.close()
  await rm(folder, { recursive: true, force: true })
})

function submissionOf(name: string, rules = ''): ScheduleSubmission {
  const text = `name: ${name}\n${rules}\njob:\n  script: train.py\n  secrets: [HF_TOKEN]\n`
  const read = parseRetrainFile(text, { fileName: 'retrain.yaml', nowMs: Date.now() })
  if ('problems' in read) throw new Error(JSON.stringify(read.problems))
  return { retrain: read.retrain, directory: join(folder, 'code') }
}

const RULES = {
  'by-default': '',
  'last-friday': 'every: month\nday: last friday\ntime: "02:30"\nzone: Europe/Berlin\nlead: 10d',
  'end-of-month': 'every: month\nday: 31\ntime: "23:59"\nzone: America/New_York\nlead: 21d',
  'first-monday': 'day: first monday\nzone: Australia/Lord_Howe\nlead: 56d',
  'with-blackouts': `months: [3, 12]\nday: 28\nzone: Asia/Kathmandu\nblackouts:\n  - {from: 2026-12-20, to: 2027-01-05}\n  - {from: 2027-12-20, to: 2028-01-05}`,
}

describe('a retraining schedule in Temporal', () => {
  it.each(Object.entries(RULES))('starts its runs when the preview says: %s', async (name, rules) => {
    const { retrain, directory } = submissionOf(name, rules)
    const created = await createSchedule(context, { retrain, directory })
    const expected = nextRuns(retrain.spec, Date.now(), 10).runs.map(({ startsAtMs }) => startsAtMs)
    expect(created.runs.map(({ startsAtMs }) => startsAtMs)).toEqual(expected.slice(0, 4))
    const held = await heldSchedule(context, name)
    // The server says at most ten.
    expect(held!.nextStartsAtMs).toEqual(expected.slice(0, held!.nextStartsAtMs.length))
    expect(held!.nextStartsAtMs.length).toBeGreaterThan(4)
  })

  it('is created once, whatever is repeated, and refuses another content under its name', async () => {
    const submission = submissionOf('once')
    expect(await createSchedule(context, submission)).toMatchObject({ isNew: true, revision: 1 })
    expect(await createSchedule(context, submission)).toMatchObject({ isNew: false, revision: 1 })
    const other = submissionOf('once', 'every: month')
    await expect(createSchedule(context, other)).rejects.toThrow(
      'A schedule once already exists with other content.',
    )
    expect(await updateSchedule(context, other)).toMatchObject({ isNew: true, revision: 2 })
    const revisions = await readRevisions(context.store, 'once')
    expect(revisions.map(({ kind, by }) => [kind, by])).toEqual([
      ['created', 'ada'],
      ['updated', 'ada'],
    ])
    expect((await showSchedule(context, 'once')).spec.calendar.months).toHaveLength(12)
  })

  it('is the same with other times of its files, and has a new revision when the store lost its code', async () => {
    const submission = submissionOf('timed')
    await createSchedule(context, submission)
    await utimes(join(folder, 'code', 'train.py'), 0, 1)
    expect(await createSchedule(context, submission)).toMatchObject({ isNew: false, revision: 1 })
    const [first] = await readRevisions(context.store, 'timed')
    await context.store.delete(layout.scheduleBundle('timed', first!.input.bundle!.sha256))
    expect(await createSchedule(context, submission)).toMatchObject({ isNew: true, revision: 2 })
    const { input } = (await readRevisions(context.store, 'timed')).at(-1)!
    expect(await context.store.head(layout.scheduleBundle('timed', input.bundle!.sha256))).toBeDefined()
  })

  it('is completed by the same call when the server lost it', async () => {
    const submission = submissionOf('lost')
    await createSchedule(context, submission)
    await (await context.temporal()).schedule.getHandle('retrain/lost').delete()
    await until(async () => (await heldSchedule(context, 'lost')) === undefined)
    expect(await createSchedule(context, submission)).toMatchObject({ isNew: true, revision: 1 })
    expect(await heldSchedule(context, 'lost')).toBeDefined()
  })

  it('keeps its secrets sealed, and gets new values without a new file', async () => {
    const read = async (revision: number): Promise<unknown> => {
      const key = (await readDeploymentKey(context.config.home.secretKeyFile))!
      const sealed = (await context.store.get(layout.scheduleSecrets('sealed', revision)))!.toString()
      expect(sealed).not.toContain('first')
      return openSecrets(scheduleKey(key, 'sealed'), sealed)
    }
    await createSchedule(context, submissionOf('sealed'))
    expect(await read(1)).toEqual({ HF_TOKEN: 'first' })
    environment['HF_TOKEN'] = 'second'
    expect(await renewSecrets(context, 'sealed')).toEqual({ revision: 2, secrets: ['HF_TOKEN'] })
    expect(await read(2)).toEqual({ HF_TOKEN: 'second' })
    delete environment['HF_TOKEN']
    await expect(renewSecrets(context, 'sealed')).rejects.toThrow('The runs need the secret HF_TOKEN')
    environment['HF_TOKEN'] = 'first'
  })

  it('is paused and resumed with a word, and listed', async () => {
    await createSchedule(context, submissionOf('paused'))
    await pauseSchedule(context, 'paused', 'audit')
    expect(await showSchedule(context, 'paused')).toMatchObject({ state: 'paused', note: 'audit' })
    await resumeSchedule(context, 'paused', 'done')
    const listed = await listSchedules(context)
    expect(listed.find(({ name }) => name === 'paused')).toMatchObject({
      state: 'active',
      owner: 'ada',
      last: null,
    })
  })

  it.each([
    ['ahead', 2 * HOUR_MS],
    ['behind', -2 * HOUR_MS],
  ])('is changed with dates of the server where the clock of the computer is 2 h %s', async (way, byMs) => {
    const name = `clock-${way}`
    const wrong = (): Context => new Context(context.config, () => Date.now() + byMs)
    const acts: readonly ((at: Context) => Promise<unknown>)[] = [
      (at) => createSchedule(at, submissionOf(name)),
      (at) => pauseSchedule(at, name, 'audit'),
      (at) => resumeSchedule(at, name, 'done'),
      (at) => updateSchedule(at, submissionOf(name, 'every: month')),
      (at) => renewSecrets(at, name),
      (at) => triggerSchedule(at, name),
    ]
    for (const act of acts) {
      const own = wrong()
      await act(own)
      await own.close()
    }
    const { store } = context
    const marks = [
      ...(await readPauses(store, name)),
      ...(await readRevisions(store, name)),
      ...(await readPermits(store, name)),
    ]
    expect(marks).toHaveLength(6)
    for (const { atMs } of marks) expect(Math.abs(atMs - Date.now())).toBeLessThan(5 * MINUTE_MS)
  })

  it('makes up for a date of the past, and only for that', async () => {
    const submission = submissionOf('missed', 'every: month')
    await createSchedule(context, submission)
    const [before] = nextRuns(submission.retrain.spec, Date.now() - 200 * DAY_MS, 1).runs
    const fromMs = before!.opensAtMs - DAY_MS / 4
    const runs = await backfill(context, 'missed', { fromMs, toMs: fromMs + DAY_MS })
    expect(runs.map(({ date }) => date)).toEqual([before!.date])
    await until(async () => (await heldSchedule(context, 'missed'))!.running.length > 0)
    const { running } = (await heldSchedule(context, 'missed'))!
    const scheduledAt = new Date(before!.startsAtMs).toISOString().replace('.000', '')
    expect(running).toEqual([`retrain/missed-${scheduledAt}`])
    const other = { fromMs: fromMs + 2 * DAY_MS, toMs: fromMs + 3 * DAY_MS }
    await expect(backfill(context, 'missed', other)).rejects.toThrow('has no date in that time')
  })

  it('shows a run by hand, and makes up for no date to come', async () => {
    await createSchedule(context, submissionOf('by-hand'))
    await triggerSchedule(context, 'by-hand')
    await until(async () => (await heldSchedule(context, 'by-hand'))!.running.length > 0)
    expect((await heldSchedule(context, 'by-hand'))!.running).toEqual([
      expect.stringMatching(/^retrain\/by-hand-/),
    ])
    const toMs = Date.now() + 400 * DAY_MS
    await expect(backfill(context, 'by-hand', { fromMs: Date.now(), toMs })).rejects.toThrow('is not missed')
  })

  it('is deleted with its secrets; its revisions stay', async () => {
    await createSchedule(context, submissionOf('gone'))
    await deleteSchedule(context, 'gone')
    expect(await context.store.get(layout.scheduleSecrets('gone', 1))).toBeUndefined()
    await until(async () => (await heldSchedule(context, 'gone')) === undefined)
    await expect(showSchedule(context, 'gone')).rejects.toThrow('There is no schedule gone.')
    expect((await readRevisions(context.store, 'gone')).map(({ kind }) => kind)).toEqual([
      'created',
      'deleted',
    ])
    expect(await createSchedule(context, submissionOf('gone'))).toMatchObject({ isNew: true, revision: 3 })
  })

  it('starts late what an outage of weeks has missed', async () => {
    const client = await context.temporal()
    const { policies } = await client.schedule.getHandle('retrain/by-default').describe()
    expect(policies.catchupWindow).toBe(CATCH_UP_MS)
    expect(CATCH_UP_MS).toBeGreaterThan(7 * DAY_MS)
  })
})
