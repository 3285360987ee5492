/** Machines that are left before they are taken, and what stays with a job that moves, on EC2 over the wire. */
import { ListCommandInvocationsCommand, SSMClient } from '@aws-sdk/client-ssm'
import { describe, expect, it, jest } from '@jest/globals'
import { HOUR_MS } from '../../core/time/time'
import { QUICK, type CloudDeployment } from './deployment'
import { onDeployment } from './hooks'
import { itInAll } from '../support/selection'
import { DEFAULT_IMAGE } from '../backends/ec2/harness'

jest.setTimeout(300_000)

/** More steps than any of these jobs does: no checkpoint but those that are asked for. */
const NEVER = 1_000_000

let d: CloudDeployment

onDeployment(
  {
    world: { durations: { osShutdown: 1_000 } },
    settings: QUICK,
  },
  (started) => {
    d = started
  },
)

/** A rebalance recommendation for the machine of a job, and nothing after it for as long as these tests last. */
function recommend(jobId: string): void {
  d.cloud.interrupt(d.machineOf(jobId), { rebalanceBeforeMs: HOUR_MS })
}

const hasSteps = (jobId: string, steps: number) =>
  d.see(jobId, ({ attempts }) => (attempts.at(-1)?.progress?.step ?? 0) >= steps)

describe('rebalance recommendation', () => {
  it.concurrent('moves a job that says so, with a checkpoint first', async () => {
    const id = await d.submit({ id: 'job-moves', onRebalance: 'move' }, { every: NEVER })
    await hasSteps(id, 20)
    recommend(id)
    const view = await d.ended(id)
    expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
    const [first, second] = view.attempts
    expect(first).toMatchObject({ state: 'stopped', reason: 'migrated', checkpoint: expect.anything() })
    expect(first!.stepsLost).toBeLessThanOrEqual(1)
    expect(second!.restoredFrom).toEqual(first!.checkpoint)
    expect([second!.place, second!.realised?.type]).not.toEqual([first!.place, first!.realised?.type])
    const told = (await d.client.events(id)).filter(({ text }) => text.includes('rebalance recommendation'))
    expect(told[0]).toMatchObject({ attempt: 1 })
  })

  itInAll.concurrent('brings a job that says nothing a checkpoint, and leaves it where it is', async () => {
    const id = await d.submit(
      { id: 'job-stays', checkpoint: { everyMs: HOUR_MS } },
      { every: 20, lastAttempt: 2 },
    )
    const { attempts } = await d.atStep(id, 60)
    const saved = attempts[0]!.checkpoint!.step
    recommend(id)
    const view = await d.see(id, ({ attempts: [first] }) => (first?.checkpoint?.step ?? 0) > saved)
    expect(view.attempts[0]!.rebalanceAtMs).not.toBeNull()
    await hasSteps(id, view.attempts[0]!.progress!.step! + 40)
    await d.client.cancel(id)
    expect(await d.ended(id)).toMatchObject({ state: 'cancelled', attemptsTotal: 1 })
    expect(d.machinesOf(id)).toHaveLength(1)
  })
})

describe('the image of the machine', () => {
  itInAll.concurrent(
    'stays with the job when the public parameter leads to another; a new job gets that',
    async () => {
      const id = await d.submit({ id: 'job-pinned' })
      await d.atStep(id, 20)
      const image = d.machinesOf(id)[0]!.image
      const newer = 'ami-0123456789abcdef0'
      d.cloud.publishImage({
        name: DEFAULT_IMAGE.split(':').at(-1)!.replace('{arch}', 'x86_64'),
        image: newer,
      })
      // What a worker remembers of the parameter must not be what keeps the image.
      await d.restartBackends()
      d.cloud.interrupt(d.machineOf(id), { isSilent: true })
      expect(await d.ended(id)).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
      expect(d.machinesOf(id).map((machine) => machine.image)).toEqual([image, image])
      await d.submit({ id: 'job-after' }, { lastAttempt: 1 })
      expect(await d.ended('job-after')).toMatchObject({ state: 'succeeded' })
      expect(d.machinesOf('job-after').map((machine) => machine.image)).toEqual([newer])
    },
  )
})

describe('a runner that cannot read the store', () => {
  /** What came of the commands that told the runner of an attempt to drain. */
  async function toldToDrain(jobId: string): Promise<unknown[]> {
    const ssm = new SSMClient({})
    const InstanceId = d.machinesOf(jobId)[0]!.id
    const { CommandInvocations = [] } = await ssm.send(
      new ListCommandInvocationsCommand({ InstanceId, Details: true }),
    )
    ssm.destroy()
    return CommandInvocations.filter(({ Comment }) => Comment === `crucible drain ${jobId}-1`).map(
      ({ Status, CommandPlugins }) => [Status, CommandPlugins![0]!.Output],
    )
  }

  /** For the credentials of its first attempt. */
  const outOfReach = (jobId: string, action: string): (() => void) =>
    d.cloud.addFault({
      fault: 'error',
      code: 'ServiceUnavailable',
      status: 503,
      where: { service: 's3', action, caller: `*${jobId}-1` },
    })

  it.concurrent(
    'drains by the word of SSM, and the job continues from the checkpoint of that drain',
    async () => {
      const id = await d.submit({ id: 'job-blind' }, { every: NEVER })
      await hasSteps(id, 20)
      outOfReach(id, 'GetObject')
      await d.client.migrate(id)
      const view = await d.ended(id)
      expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
      const [first, second] = view.attempts
      expect(first).toMatchObject({ state: 'stopped', reason: 'migrated' })
      expect(first!.stepsLost).toBeLessThanOrEqual(1)
      expect(second!.restoredFrom).toEqual(first!.checkpoint)
      expect(await toldToDrain(id)).toEqual([['Success', '']])
    },
  )

  itInAll.concurrent(
    'nor write to it drains too; the job continues from the last checkpoint before',
    async () => {
      const id = await d.submit({ id: 'job-cut-off' })
      const { attempts } = await d.atStep(id, 30)
      const { checkpoint } = attempts[0]!
      outOfReach(id, '*')
      await d.client.migrate(id)
      const view = await d.ended(id)
      expect(view).toMatchObject({ state: 'succeeded', attemptsTotal: 2 })
      expect(await toldToDrain(id)).toEqual([['Success', '']])
      expect(view.attempts[1]!.restoredFrom!.step).toBeGreaterThanOrEqual(checkpoint!.step)
    },
  )
})
