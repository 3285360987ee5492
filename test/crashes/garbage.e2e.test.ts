/** Garbage collection whose processes die in the middle of it, and whose lists are late, while a job is being launched. */
import { DescribeLaunchTemplatesCommand } from '@aws-sdk/client-ec2'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Beat } from '../../core/documents'
import { layout } from '../../storage/layout'
import { sweep } from '../clouds/cloud'
import { EC2 } from '../clouds/providers/ec2'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { Crew } from './crew'
import { gateSdk } from './gates'
import { SPEC, TIMING, untilAtWork } from './lives'
import { asOther, leaveMachine, litter } from './litter'
import type { Moment } from './process'
import { closeSite, openSiteOf, patientStatus } from './run'
import type { Site } from './site'
import { chosen } from '../support/selection'

/** Before, in and after what a collection asks and what it ends. */
const DEATHS: [Moment, string][] = [
  ['after', 'DescribeInstances'],
  ['before', 'describe the owner'],
  ['before', 'TerminateInstances'],
  ['after', 'TerminateInstances'],
  ['in', 'DeleteVolume'],
  ['after', 'CancelSpotInstanceRequests'],
  ['in', 'DeleteLaunchTemplate'],
]

const GRACE_MS = 500
/** A list is behind by up to that, and what is new is not in it for as long. */
const LATE_MS = 1_500
/** A request of a process that died has its effect this much later. */
const ARRIVES_AFTER_MS = 1_000
const STEPS_MIN = 5
/** However busy this computer is; a death costs a heartbeat timeout of 20 s. */
const LIMIT_MS = 420_000

let at: TestConnection
let crew: Crew
beforeAll(async () => {
  quietWorkers()
  gateSdk()
  at = await connectTo()
  crew = await Crew.begin(at, EC2)
})
afterAll(async () => {
  await crew.close()
  await at.close()
})

const alive = ({ options: { ground } }: Site) =>
  ground.cloud.instances().filter(({ state }) => ['pending', 'running', 'shutting-down'].includes(state))

async function templatesOf(site: Site): Promise<(string | undefined)[]> {
  const { LaunchTemplates = [] } = await asOther(site, (client) =>
    client.send(new DescribeLaunchTemplatesCommand({})),
  )
  return LaunchTemplates.map(({ LaunchTemplateName }) => LaunchTemplateName)
}

async function stepOf({ store, options: { jobId } }: Site): Promise<number> {
  const beat = await store.get(layout.beat(jobId, 1))
  return beat === undefined ? 0 : ((JSON.parse(beat.toString()) as Beat).progress?.step ?? 0)
}

describe('a collection of garbage whose lists are late', () => {
  it.concurrent.each(chosen(DEATHS, [['before', 'TerminateInstances']]))(
    'ends all orphans and nothing else, though its process dies %s %s',
    async (moment, name) => {
      const call = `collectGarbage: ${name}`
      const index = DEATHS.findIndex(([when, what]) => when === moment && what === name)
      let struck = 0
      const site = await openSiteOf(crew, 500 + index, {
        wishes: {
          world: { durations: { staleList: [0, LATE_MS], notFound: [0, LATE_MS] } },
          behave: () => ({ stepsPerSecond: 1 }),
          config: { templatesKeptMs: 1 },
          timing: TIMING,
        },
        deathAt: (asked, occurrence) => {
          if (asked !== call || occurrence !== 1) return undefined
          struck += 1
          return { moment, lateMs: ARRIVES_AFTER_MS, isOfBoth: false }
        },
      })
      const { jobId, deployment, ground } = site.options
      const collect = () =>
        sweep(crew.client, { deployment, backends: ['ec2'], graceMs: GRACE_MS, isDryRun: false })
      try {
        await litter(site)
        await leaveMachine(site)
        await until(() => alive(site).length === 1)
        const job = await crew.submit(SPEC, { jobId, deployment })
        // It looks while the job's machine is bought, and again once that is at work.
        await collect()
        await untilAtWork(site, 0)
        const { verdicts } = await collect()
        expect(verdicts.filter(({ action }) => action === 'failed')).toEqual([])
        // What was on its way when its process died, too.
        await until(() => alive(site).length === 1)

        expect(struck).toBe(1)
        expect(await ground.provider.remains(ground.cloud)).toEqual([])
        expect(await templatesOf(site)).not.toContain('stray')
        // The job's one machine, at its first attempt, which continues.
        const [machine] = ground.machines.filter(({ isAtWork }) => isAtWork)
        expect(alive(site)).toMatchObject([{ id: machine!.id, tags: { 'crucible:attempt': `${jobId}-1` } }])
        const before = await stepOf(site)
        await until(async () => (await stepOf(site)) >= before + STEPS_MIN, LIMIT_MS)
        expect(await patientStatus(job)).toMatchObject({ state: 'running', attemptsTotal: 1 })
        await job.cancel()
        await job.result().catch(() => undefined)
      } finally {
        await closeSite(crew, site)
      }
    },
    LIMIT_MS,
  )
})
