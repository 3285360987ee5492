import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { submit, type Submission, type Submitted } from '../../../client/job/submit'
import { HOUR_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { putRecord, readRecords } from '../../../storage/record'
import { COMPLETE } from '../../support/manifests'
import { OWN_START } from '../own-start'
import { ClientWorld, JOB, NOW, SPEC, statusOf } from '../world'
import { partialEntry } from '../../support/record'

const ID = 'job-nightly'
const VALUE = 'the-value-of-the-secret'
const RUN = '01a1ff26-e52a-7d78-9de0-360105e41353'

let world: ClientWorld
/** What the server was asked to start, as it arrived. */
let started: { workflowId: string; options: Record<string, unknown> }[]
let failure: Error | undefined
/** The deployment that the server serves. */
let held: string | undefined

beforeEach(async () => {
  world = await ClientWorld.make({ TOKEN: VALUE })
  started = []
  failure = undefined
  held = undefined
  world.client = {
    ...OWN_START,
    withDeadline: (_: number, call: () => unknown) => call(),
    withAbortSignal: () => Promise.reject(new Error('no server')),
    workflow: { start: startWorkflow },
    schedule: { getHandle: () => ({ describe: describeSchedule }) },
  } as unknown as Partial<Client>
})

async function startWorkflow(
  _type: string,
  options: { workflowId: string },
): Promise<{ firstExecutionRunId: string }> {
  if (failure !== undefined) throw failure
  const { workflowId } = options
  if (started.some((each) => each.workflowId === workflowId))
    throw Object.assign(new Error('there'), { name: 'WorkflowExecutionAlreadyStartedError' })
  started.push({ workflowId, options: { ...options } })
  return { firstExecutionRunId: RUN }
}

async function describeSchedule(): Promise<object> {
  if (held !== undefined) return { action: { args: [{ deployment: held }] } }
  throw Object.assign(new Error('none'), { name: 'ScheduleNotFoundError' })
}

afterEach(() => world.remove())

async function folder(text = 'print(1)'): Promise<string> {
  const path = join(world.folder, 'code')
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'train.py'), text)
  return path
}

describe('submit', () => {
  it('refuses a computer with a wrong clock, before anything is written or sent', async () => {
    const store = world.store
    Object.defineProperty(store, 'clockOffsetMs', { value: -2 * HOUR_MS })
    const directory = await folder()
    await expect(submit(world.context, { spec: SPEC, directory, id: ID })).rejects.toMatchObject({
      kind: 'usage',
      message:
        "The clock of this computer is about 2h ahead of the deployment's. Workers would refuse the request, so nothing was sent.",
      hint: expect.stringContaining('timedatectl set-ntp true'),
    })
    expect(started).toEqual([])
    expect(await store.listFolders(layout.jobs())).toEqual([])
  })

  it('refuses a program that needs CUDA on an accelerator without it, as the command line does', async () => {
    const directory = await folder(
      [
        'import torch',
        'model = torch.nn.Linear(9, 9).cuda()',
        'optimizer = torch.optim.SGD(model.parameters(), lr=0.1)',
        'for epoch in range(9):',
        '    model(torch.ones(9).cuda()).sum().backward()',
        '    optimizer.step()',
        "torch.save(model.state_dict(), 'model.pt')",
      ].join('\n'),
    )
    const on = (accelerator: string) => ({ ...SPEC, resources: { accelerators: [accelerator] } })
    const submission = { spec: on('Trainium'), directory, id: ID }
    await expect(submit(world.context, submission)).rejects.toMatchObject({
      kind: 'usage',
      message: 'train.py:2 needs CUDA, which Trainium lacks.',
      hint: expect.stringContaining('isAnalyzed: false'),
    })
    expect(started).toEqual([])
    await submit(world.context, { ...submission, isAnalyzed: false })
    await submit(world.context, { spec: on('H100'), directory, id: `${ID}-2` })
    expect(started).toHaveLength(2)
  })

  it('says how to repeat it if the server does not answer', async () => {
    failure = Object.assign(new Error('Failed to start workflow'), { code: 4 })
    await expect(submit(world.context, { spec: SPEC, id: ID })).rejects.toMatchObject({
      kind: 'unavailable',
      message: `The Temporal server does not answer (Failed to start workflow), so it is unknown whether it started ${ID}.`,
      hint: expect.stringContaining(`--id ${ID}`),
    })
  })

  it('starts one workflow, named for the job, that says what it is', async () => {
    const directory = await folder()
    const submitted = await submit(world.context, { spec: SPEC, directory, id: ID })
    expect(submitted).toEqual({
      id: ID,
      workflowId: `job/${ID}`,
      source: null,
      warnings: [expect.stringContaining('it has no checkpoint.directory')],
      isNew: true,
      isServed: true,
      uiUrl: `http://ui/namespaces/default/workflows/job%2F${ID}/${RUN}/user-metadata`,
    })
    expect(started).toHaveLength(1)
    expect(started[0]!.options).toMatchObject({
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: 'crucible',
      staticSummary: 'train: `python3 train.py`',
      staticDetails: expect.stringContaining('- code: 1 file, `'),
      args: [{ jobId: ID, spec: SPEC, bundle: { files: 1 }, submittedAtMs: NOW, owner: 'somebody' }],
    })
  })

  it('makes an id that no other job has', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => submit(world.context, { spec: SPEC })))
    expect(new Set(ids.map(({ id }) => id)).size).toBe(3)
    for (const { id } of ids) expect(id).toMatch(new RegExp(`^${SPEC.name}-[a-z][0-9a-z]{5}$`))
  })

  it('is the same job when it is repeated with its id', async () => {
    const directory = await folder()
    await submit(world.context, { spec: SPEC, directory, id: ID })
    world.nowMs += 1_000
    expect(await submit(world.context, { spec: SPEC, directory, id: ID })).toMatchObject({
      id: ID,
      isNew: false,
      uiUrl: `http://ui/namespaces/default/workflows/job%2F${ID}`,
    })
    expect(started).toHaveLength(1)
    expect(await readRecords(world.store, ID)).toHaveLength(1)
  })

  it('is the same job in processes that count its deadline from their own times', async () => {
    const dueIn = (ms: number): Promise<Submitted> =>
      submit(world.context, { spec: { ...SPEC, deadlineAtMs: world.nowMs + ms }, id: ID })
    await dueIn(HOUR_MS)
    world.nowMs += 4_000
    expect(await dueIn(HOUR_MS)).toMatchObject({ isNew: false })
    await expect(dueIn(2 * HOUR_MS)).rejects.toMatchObject({
      message: `A different job ${ID} already exists.`,
    })
  })

  it('is the same job when its files have other times, and keeps the code that its record names', async () => {
    const directory = await folder()
    await submit(world.context, { spec: SPEC, directory, id: ID })
    await utimes(join(directory, 'train.py'), 0, 1)
    expect(await submit(world.context, { spec: SPEC, directory, id: ID })).toMatchObject({ isNew: false })
    const [{ bundle }] = started[0]!.options.args as [{ bundle: { sha256: string } }]
    expect(await readdir(join(world.folder, 'store', 'jobs', ID, 'bundle'))).toEqual([
      `${bundle.sha256}.tar.gz`,
    ])
  })

  it('is the same job when Temporal has long forgotten it', async () => {
    await submit(world.context, { spec: SPEC, id: ID })
    const resolved = partialEntry({ seq: 1, atMs: NOW, kind: 'resolved', summary: '', data: {} })
    await putRecord(world.store, ID, resolved)
    started = []
    expect(await submit(world.context, { spec: SPEC, id: ID })).toMatchObject({ id: ID, isNew: false })
    expect(started).toEqual([])
  })

  it('resumes where it stopped when the server was lost in the middle', async () => {
    failure = Object.assign(new Error('gone'), { code: 14 })
    await expect(submit(world.context, { spec: SPEC, id: ID })).rejects.toThrow('gone')
    failure = undefined
    world.nowMs += 1_000
    expect(await submit(world.context, { spec: SPEC, id: ID })).toMatchObject({ isNew: true })
    // Its deadline and its age count from the first time.
    expect(started[0]!.options).toMatchObject({ args: [{ submittedAtMs: NOW }] })
  })

  it.each([
    ['another spec', async () => ({ spec: { ...SPEC, run: 'other' }, directory: await folder() })],
    ['other code', async () => ({ spec: SPEC, directory: await folder('print(2)') })],
  ])('refuses an id that is taken by %s', async (_what, other) => {
    await submit(world.context, { spec: SPEC, directory: await folder(), id: ID })
    await expect(submit(world.context, { ...(await other()), id: ID })).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining('A different job'),
    })
  })

  it.each(['9-nightly', 'job-', 'job-UPPER', 'job-a/b', 'job-x-', `job-${'x'.repeat(40)}`])(
    'refuses %s as an id',
    async (id) => {
      await expect(submit(world.context, { spec: SPEC, id })).rejects.toMatchObject({ kind: 'usage' })
    },
  )

  it('leaves nothing behind when no server answers', async () => {
    world.client = undefined
    await expect(submit(world.context, { spec: SPEC })).rejects.toMatchObject({ kind: 'unavailable' })
    expect(await readdir(world.folder)).toEqual(['store'])
    expect(await readdir(join(world.folder, 'store'))).toEqual([layout.deployment()])
  })

  it('gives no job to a server that serves another store', async () => {
    held = 'dep-other00000'
    await expect(submit(world.context, { spec: SPEC })).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining('dep-other00000'),
    })
    expect(started).toEqual([])
  })

  it('names the secrets that are not set, and starts nothing', async () => {
    const spec = { ...SPEC, secrets: ['TOKEN', 'OTHER', 'THIRD'] }
    await expect(submit(world.context, { spec })).rejects.toMatchObject({
      kind: 'usage',
      message:
        'The job needs the secrets OTHER, THIRD, which are not set here. Set them in the environment of this command, such as `OTHER=... crucible submit ...`.',
    })
    expect(started).toEqual([])
  })

  it('keeps the value of a secret to itself', async () => {
    const spec = { ...SPEC, secrets: ['TOKEN'] }
    await submit(world.context, { spec, id: ID, directory: await folder() })
    expect(JSON.stringify(started)).not.toContain(VALUE)
    expect(JSON.stringify(await readRecords(world.store, ID))).not.toContain(VALUE)
    const sealed = await world.store.get(layout.secrets(ID))
    expect(sealed?.length).toBeGreaterThan(0)
    expect(sealed!.toString('utf8')).not.toContain(VALUE)
  })

  it('seals the password of a registry with the secrets, even if it is the only one', async () => {
    const spec = { ...SPEC, image: 'ghcr.io/team/x', imageLogin: { username: 'robot', secret: 'TOKEN' } }
    await submit(world.context, { spec, id: ID, directory: await folder() })
    expect(JSON.stringify(started)).not.toContain(VALUE)
    expect((await world.store.get(layout.secrets(ID)))?.length).toBeGreaterThan(0)
    const other = { ...spec, imageLogin: { username: 'robot', secret: 'OTHER' } }
    await expect(submit(world.context, { spec: other })).rejects.toThrow('OTHER')
  })

  it('sends the code of an earlier job once more', async () => {
    await submit(world.context, { spec: SPEC, directory: await folder(), id: ID })
    const again = await submit(world.context, { spec: SPEC, from: ID, isFresh: true })
    expect(again.source).toBeNull()
    const [first, second] = started.map(
      ({ options }) => (options.args as [{ bundle: unknown; from?: string }])[0],
    )
    expect(second?.bundle).toEqual(first!.bundle)
    expect(second?.from).toBe(ID)
    expect(second).toEqual(expect.not.objectContaining({ source: expect.anything() }))
    const { sha256 } = first!.bundle as { sha256: string }
    expect(await world.store.head(layout.bundle(again.id, sha256))).toBeDefined()
  })

  it('says what to do with a server that no worker has made ready', async () => {
    failure = Object.assign(new Error('Namespace has no mapping defined for search attribute CrucibleName'), {
      code: 3,
    })
    await expect(submit(world.context, { spec: SPEC })).rejects.toMatchObject({
      kind: 'unavailable',
      hint: expect.stringContaining('crucible worker'),
    })
  })
})

describe('a submission that continues an earlier job', () => {
  const EARLIER = JOB
  /** What the server knows of the earlier job's workflow; nothing when it has forgotten it. */
  let status: string | undefined
  const go = (fields: Partial<Submission> = {}): Promise<Submitted> =>
    submit(world.context, { spec: SPEC, from: EARLIER, id: ID, ...fields })

  beforeEach(async () => {
    status = undefined
    Object.assign(world.client!.workflow!, {
      getHandle: () => ({
        describe: async () => {
          if (status !== undefined) return { status: { name: status } }
          throw Object.assign(new Error('none'), { name: 'WorkflowNotFoundError' })
        },
      }),
    })
    await world.submitted()
  })

  async function save(step: number, text?: string): Promise<void> {
    const manifest = {
      ...COMPLETE,
      version: 1,
      jobId: EARLIER,
      attempt: 2,
      step,
      isStepKnown: true,
      createdAtMs: NOW,
      files: [],
      resumePath: '.',
      totalBytes: 0,
    }
    await world.store.put(
      `${layout.checkpoint(EARLIER, step, 2)}manifest.json`,
      text ?? JSON.stringify(manifest),
    )
  }

  it('names the newest good checkpoint, also of a job that the server has forgotten', async () => {
    await save(5)
    await save(9)
    await save(12, '{')
    const source = { jobId: EARLIER, checkpoint: { id: '000000000009-2', step: 9, attempt: 2 } }
    expect(await go()).toMatchObject({ isNew: true, source })
    expect(started[0]!.options).toMatchObject({
      args: [{ from: EARLIER, source }],
      staticDetails: expect.stringContaining(`- from: ${EARLIER}, step 9`),
    })
    // Made once, however often it is asked for; and a different one under the same id is recognised.
    expect(await go()).toMatchObject({ isNew: false, source })
    await expect(go({ isFresh: true })).rejects.toMatchObject({ kind: 'usage', message: /another one/ })
  })

  it('is refused while the earlier job may still save, and says what to do', async () => {
    await save(5)
    status = 'RUNNING'
    await expect(go()).rejects.toMatchObject({
      kind: 'usage',
      hint: expect.stringContaining('crucible cancel'),
    })
    await go({ isFresh: true, id: 'job-beside' })
    status = 'TERMINATED'
    expect((await go()).source?.checkpoint.step).toBe(5)
  })

  it('does not ask the server of a job whose record says that it is over', async () => {
    await save(5)
    status = 'RUNNING'
    await world.finished(statusOf({ state: 'failed', reason: 'workload-failed' }))
    expect((await go()).source?.checkpoint.step).toBe(5)
  })

  it('is refused without a checkpoint, and leaves nothing behind', async () => {
    await save(5, '{')
    await expect(go()).rejects.toMatchObject({
      kind: 'not-found',
      hint: expect.stringContaining(`submit --from ${EARLIER} --fresh`),
    })
    await expect(go({ from: 'job-none' })).rejects.toMatchObject({ kind: 'not-found' })
    expect(started).toEqual([])
    expect(await readRecords(world.store, ID)).toEqual([])
  })
})

describe('what a submission warns of', () => {
  const manifest = {
    version: 1,
    jobId: 'job-before',
    attempt: 1,
    step: 7,
    isStepKnown: true,
    ...COMPLETE,
    createdAtMs: NOW,
  }
  const FILES = { files: [], resumePath: '.', totalBytes: 1e9, uploadMs: 120_000 }
  const warnings = async (spec: Partial<typeof SPEC> = {}): Promise<string[]> =>
    (await submit(world.context, { spec: { ...SPEC, ...spec }, directory: null, id: ID })).warnings.filter(
      (warning) => warning.startsWith('On a spot machine'),
    )

  it('includes checkpoints that cannot be saved within a notice, by the size in earlier jobs of its name', async () => {
    const asked: string[] = []
    world.client = {
      ...world.client,
      workflow: {
        ...world.client!.workflow,
        list: async function* ({ query }: { query: string }) {
          asked.push(query)
          yield* [{ workflowId: 'job/job-without-any' }, { workflowId: 'job/job-before' }]
        },
      },
    } as unknown as Partial<Client>
    const key = `${layout.checkpoints('job-before')}000000000007-1/manifest.json`
    await world.store.put(key, JSON.stringify({ ...manifest, ...FILES }))
    expect(await warnings()).toEqual([
      expect.stringMatching(/^On a spot machine, saving a checkpoint of 1 GB takes 2m .* is done again\.$/),
    ])
    expect(asked).toEqual([expect.stringContaining("= 'train'")])
  })

  it('needs no earlier job where the spec says the size', async () => {
    const checkpoint = { sizeBytes: 40e9 }
    expect(await warnings({ checkpoint })).toEqual([expect.stringMatching(/40 GB .* at an assumed/)])
  })

  it.each([
    { isInterruptible: false },
    { backends: [{ backend: 'ec2', capacityType: 'on-demand' as const }] },
  ])('is nothing for %j', async (spec) => {
    expect(await warnings({ checkpoint: { sizeBytes: 40e9 }, ...spec })).toEqual([])
  })
})
