import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { expectPlace, QUOTA } from '../../../client/job/expect'
import { groupRejections, type PlanReport, type Rejection } from '../../../core/job/plan'
import { HOUR_MS } from '../../../core/time/time'
import { putDocument } from '../../../storage/json'
import { layout } from '../../../storage/layout'
import { ClientWorld, NOW, SPEC } from '../world'

let world: ClientWorld
beforeEach(async () => {
  world = await ClientWorld.make()
  await putDocument(world.store, layout.deployment(), { id: 'dep-0000000000' })
})
afterEach(() => world.remove())

const REPORT: PlanReport = {
  prospect: { kind: 'place' },
  placements: [],
  rejections: [],
  isDurationAssumed: false,
  silentBackends: [],
  othersTotal: 0,
  others: [],
  relaxations: [],
}

/** A worker answers with a plan; `polled` are the queues that workers serve. */
function answer(report: Partial<PlanReport>, polled: string[] = []): void {
  world.client = {
    schedule: {
      getHandle: () => ({ describe: async () => ({ action: { args: [{ deployment: 'dep-0000000000' }] } }) }),
    },
    workflow: { list: async function* () {} },
    activity: { execute: async () => ({ ...REPORT, ...report }) },
    workflowService: {
      describeTaskQueue: async ({ taskQueue: { name } }: { taskQueue: { name: string } }) => ({
        pollers: polled.includes(name) ? [{ lastAccessTime: { seconds: NOW / 1000 } }] : [],
      }),
    },
  } as unknown as Client
}

function rejected(code: Rejection['code'], reason: string): PlanReport['rejections'] {
  return groupRejections([{ offerKey: 'ec2/spot/g5.xlarge/a', code, reason, why: 'unfit' }])
}

const NEVER = { kind: 'never', reason: 'no-placement', message: 'No offer fits this job: x.' } as const
const WAIT = { kind: 'wait', reason: 'No offer fits this job: lambda: silent.' } as const
const SILENT = [{ backend: 'lambda' as const, reason: 'silent' }]

describe('what a job may expect', () => {
  it('is the plan of a worker', async () => {
    answer({ prospect: { kind: 'place' } })
    expect(await expectPlace(world.context, { spec: SPEC })).toMatchObject({
      plan: { prospect: { kind: 'place' } },
      warnings: [],
    })
  })

  it('tells the first submitter of a deployment that jobs can read each other', async () => {
    const told = async (sharesUser: boolean, spec = SPEC): Promise<string[]> => {
      answer({ placements: [{ offer: { sharesUser } }] as PlanReport['placements'] })
      return (await expectPlace(world.context, { spec })).warnings
    }
    expect(await told(false)).toEqual([])
    expect(await told(true, { ...SPEC, image: 'python:3.12' })).toEqual([])
    expect(await told(true)).toEqual([
      expect.stringMatching(/^Local jobs .* the deployment's key\. .*`image`/),
    ])
    expect(await told(true)).toEqual([])
  })

  it.each([
    [2, []],
    [0.5, [expect.stringMatching(/^The sign-in of its worker ends by .* saves and stops\.$/)]],
  ])('warns of a sign-in that ends before a job of an hour: after %d h', async (hours, warnings) => {
    const offer = { signedInUntilMs: NOW + hours * HOUR_MS }
    answer({ placements: [{ offer, durationMs: HOUR_MS }] as PlanReport['placements'] })
    expect((await expectPlace(world.context, { spec: SPEC })).warnings).toEqual(warnings)
  })

  it('is unknown while no worker answers', async () => {
    expect(await expectPlace(world.context, { spec: SPEC })).toEqual({ warnings: [] })
  })

  it('is a refusal, with what to change, if no offer can ever run the job', async () => {
    const relaxations = [
      { sentence: 'With `budget: 9`: $8, on ec2/spot/g5.xlarge' },
    ] as PlanReport['relaxations']
    answer({
      prospect: NEVER,
      rejections: rejected('budget', '6h cost about $8; the budget is $1'),
      relaxations,
    })
    await expect(expectPlace(world.context, { spec: SPEC })).rejects.toMatchObject({
      kind: 'capacity',
      message:
        'No offer can run this job:\n  1 offer above the budget: ec2/spot/g5.xlarge/a (6h cost about $8; the budget is $1); raise `budget` to include it.',
      hint: 'With `budget: 9`: $8, on ec2/spot/g5.xlarge.',
    })
  })

  it('is a refusal if the deployment has none of the backends that the job names', async () => {
    answer({ prospect: NEVER, absentBackends: ['lambda'] })
    const spec = { ...SPEC, backends: [{ backend: 'lambda' as const }] }
    await expect(expectPlace(world.context, { spec })).rejects.toMatchObject({ message: NEVER.message })
  })

  it('is a warning about the backends that the deployment lacks, if it has another one', async () => {
    answer({ prospect: { kind: 'place' }, absentBackends: ['lambda'] })
    const spec = { ...SPEC, backends: [{ backend: 'local' as const }, { backend: 'lambda' as const }] }
    expect((await expectPlace(world.context, { spec })).warnings).toEqual([
      'This deployment has no backend lambda, so the job can only use local. See `crucible doctor`.',
    ])
  })

  it('is a refusal if only backends without a worker could run the job', async () => {
    answer({ prospect: WAIT, silentBackends: SILENT })
    await expect(expectPlace(world.context, { spec: SPEC })).rejects.toMatchObject({
      kind: 'unavailable',
      message: 'No worker serves lambda.',
      hint: 'Start one: `crucible worker lambda`.',
    })
  })

  it.each<[string, Partial<PlanReport>, string[]]>([
    ['a busy worker', { silentBackends: SILENT }, ['crucible.lambda']],
    ['a part of a backend', { silentBackends: [{ ...SILENT[0]!, place: 'us-east-1' }] }, []],
    [
      'free capacity elsewhere',
      {
        silentBackends: SILENT,
        rejections: groupRejections([
          { offerKey: 'a', code: 'stock', reason: 'out of stock', why: 'unavailable' },
        ]),
      },
      [],
    ],
  ])('is a wait for %s', async (_what, report, polled) => {
    answer({ prospect: WAIT, ...report }, polled)
    expect((await expectPlace(world.context, { spec: SPEC })).warnings).toEqual([
      'The job will wait. No offer fits this job: lambda: silent.',
    ])
  })

  it('may be an obstacle that will be gone when the job starts', async () => {
    answer({ prospect: { ...NEVER, reason: 'quota' } })
    expect((await expectPlace(world.context, { spec: SPEC, allowed: [QUOTA] })).warnings).toEqual([
      NEVER.message,
    ])
    await expect(expectPlace(world.context, { spec: SPEC })).rejects.toMatchObject({ kind: 'capacity' })
  })
})
