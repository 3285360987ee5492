import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Product } from '../chaos/stage'
import type { CloudProvider } from '../clouds/provider'
import { PROVIDER_NAMES, providersNamed } from '../clouds/providers'
import { inLanes, seedOptions, seedsOf, withConnection, withServer } from '../kit/runs'
import { readOptions } from '../support/options'
import type { TestConnection } from '../support/temporal'
import { SECOND_MS } from '../../core/time'
import { liveThroughBlackout } from './blackout'
import { blackoutOf } from './blackout-plan'
import { breachesIn } from './checks'
import { liveThroughCrashes, seeLives } from './live'
import { nameOf, planOf, pointsOf } from './plan'
import { processPlanOf, runProcesses, undisturbedProcesses } from './processes'
import { printBlackouts, printTable, tellBlackout, tellCrash } from './table'

/** `npm run chaos -- crashes --help` (docs/design/chaos.md). */
export async function crashes(args: string[]): Promise<void> {
  const values = readOptions(
    {
      name: 'chaos',
      word: 'crashes',
      about: 'Kills processes before, in and after every call of a job that lives on the small cloud.',
      options: {
        ...seedOptions(1_000),
        provider: {
          default: 'all',
          as: 'NAME',
          means: `${PROVIDER_NAMES.join(', ')}, or all: each gets its part of the seeds`,
        },
        'at-once': { default: 24, means: 'jobs at a time' },
        only: { default: '', as: 'TEXT', means: 'only the points whose names have it' },
        points: { default: false, means: 'prints the points, and kills nothing' },
        story: { default: false, means: 'the story of every run, not only of the broken ones' },
      },
    },
    args,
  )
  if (values === undefined) return
  const providers = providersNamed(values.provider)
  const count = Math.ceil(values.count / providers.length)
  await withConnection(async (at) => {
    for (const provider of providers) {
      process.stdout.write(`\nat ${provider.name}\n`)
      await crashesAt(at, provider, { ...values, count })
    }
  })
}

interface CrashOptions {
  from: number
  count: number
  'at-once': number
  only: string
  points: boolean
  story: boolean
}

async function crashesAt(at: TestConnection, provider: CloudProvider, values: CrashOptions): Promise<void> {
  const live = { provider, atOnce: values['at-once'] }
  const seen = await seeLives(at, {
    ...live,
    onReport: (report) => {
      if (breachesIn(report.verdict).length > 0 || values.story) tellCrash(report, values.story)
    },
  })
  const all = pointsOf(seen)
  const points = all.filter((point) => nameOf(point).includes(values.only))
  if (points.length === 0) throw new Error(`No point has "${values.only}" in its name; --points prints them.`)
  if (values.points) return points.forEach((point) => process.stdout.write(`${nameOf(point)}\n`))
  const plans = seedsOf(values).map((seed) => planOf(seed, points, { provider, all }))
  const reports = await liveThroughCrashes(at, plans, {
    ...live,
    onReport: (report) => tellCrash(report, values.story),
  })
  printTable(reports, points)
}

/** `npm run chaos -- blackouts --help` (docs/design/chaos.md). */
export async function blackouts(args: string[]): Promise<void> {
  const values = readOptions(
    {
      name: 'chaos',
      word: 'blackouts',
      about:
        'Takes the Temporal server, and all workers with it, away from jobs at work for an hour, on a scale.',
      options: {
        from: { default: 1, min: 0, means: 'the seed of the first blackout' },
        count: { default: 200, means: 'how many jobs' },
        jobs: { default: 25, means: 'how many of them in one blackout' },
        'at-once': { default: 2, means: 'blackouts at a time' },
        hour: { default: 60, means: 'seconds that stand for an hour' },
      },
    },
    args,
  )
  if (values === undefined) return
  const hourMs = values.hour * SECOND_MS
  const plans = Array.from({ length: Math.ceil(values.count / values.jobs) }, (_, index) => {
    const jobs = Math.min(values.jobs, values.count - index * values.jobs)
    return blackoutOf(values.from + index, { jobs, hourMs })
  })
  const reports = await withServer(() =>
    inLanes(plans, { atOnce: values['at-once'] }, async (plan) => {
      const report = await liveThroughBlackout(plan)
      tellBlackout(report)
      return report
    }),
  )
  printBlackouts(reports, hourMs)
}

/** `npm run chaos -- processes --help` (docs/design/chaos.md). */
export async function processes(args: string[]): Promise<void> {
  const values = readOptions(
    {
      name: 'chaos',
      word: 'processes',
      about: 'Kills real processes of the built product before, in and after their calls to the small cloud.',
      options: {
        ...seedOptions(50),
        'at-once': { default: 3, means: 'deployments at a time' },
        story: { default: false, means: 'the story of every run, not only of the broken ones' },
      },
    },
    args,
  )
  if (values === undefined) return
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'tools', 'build.mjs')], { stdio: 'inherit' })
  const product = new Product()
  await withServer(async () => {
    const first = await runProcesses(undisturbedProcesses(), product)
    tellCrash(first, values.story)
    const points = pointsOf(new Map([['plain', first.calls]]))
    const reports = await inLanes(seedsOf(values), { atOnce: values['at-once'] }, async (seed) => {
      const report = await runProcesses(processPlanOf(seed, points), product)
      tellCrash(report, values.story)
      return report
    })
    printTable(reports, points)
  }).finally(() => product.remove())
}
