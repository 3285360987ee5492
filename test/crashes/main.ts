import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Product } from '../chaos/stage'
import type { CloudProvider } from '../clouds/provider'
import { PROVIDER_NAMES, providersNamed } from '../clouds/providers'
import { inLanes, seedOptions, seedsOf, withConnection, withServer } from '../kit/runs'
import { readOptions } from '../support/options'
import type { TestConnection } from '../support/temporal'
import { SECOND_MS } from '../../core/time/time'
import { liveThroughBlackout } from './blackout'
import { blackoutOf } from './blackout-plan'
import { breachesIn } from './checks'
import { liveThroughCrashes, seeLives } from './live'
import { nameOf, planOf, pointsOf, type Point } from './plan'
import { processPlanOf, runProcesses, undisturbedProcesses } from './processes'
import { printBlackouts, printTable, tellBlackout, tellCrash } from './table'

/** The providers of a program that plays a cloud; `turns` says how several of them share its runs. */
function providerOption(turns: string) {
  const means = `${PROVIDER_NAMES.join(', ')}, or all: ${turns}`
  return { provider: { default: 'all', as: 'NAME', means } }
}
const ONLY = { only: { default: '', as: 'TEXT', means: 'only the points whose names have it' } }
const EACH_ITS_PART = 'each gets its part of the seeds'

/** `npm run chaos -- crashes --help` (docs/design/chaos.md). */
export async function crashes(args: string[]): Promise<void> {
  const values = readOptions(
    {
      name: 'chaos',
      word: 'crashes',
      about: 'Kills processes before, in and after every call of a job that lives on the small cloud.',
      options: {
        ...seedOptions(1_000),
        ...providerOption(EACH_ITS_PART),
        'at-once': { default: 24, means: 'jobs at a time' },
        ...ONLY,
        points: { default: false, means: 'prints the points, and kills nothing' },
        story: { default: false, means: 'the story of every run, not only of the broken ones' },
      },
    },
    args,
  )
  if (values === undefined) return
  await withConnection((at) =>
    atEach(values, (provider, count) => crashesAt(at, provider, { ...values, count })),
  )
}

/** Works at one provider after the other, each with its part of the seeds. */
async function atEach(
  values: { provider: string; count: number },
  work: (provider: CloudProvider, count: number) => Promise<void>,
): Promise<void> {
  const providers = providersNamed(values.provider)
  for (const provider of providers) {
    process.stdout.write(`\nat ${provider.name}\n`)
    await work(provider, Math.ceil(values.count / providers.length))
  }
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
  const points = pointsWith(values.only, all)
  if (values.points) return points.forEach((point) => process.stdout.write(`${nameOf(point)}\n`))
  const plans = seedsOf(values).map((seed) => planOf(seed, points, { provider, all }))
  const reports = await liveThroughCrashes(at, plans, {
    ...live,
    onReport: (report) => tellCrash(report, values.story),
  })
  printTable(reports, points)
}

function pointsWith(text: string, all: readonly Point[]): Point[] {
  const points = all.filter((point) => nameOf(point).includes(text))
  if (points.length === 0) throw new Error(`No point has "${text}" in its name.`)
  return points
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
        ...providerOption('they take turns'),
        jobs: { default: 25, means: 'how many of them in one blackout' },
        'at-once': { default: 2, means: 'blackouts at a time' },
        hour: { default: 60, means: 'seconds that stand for an hour' },
      },
    },
    args,
  )
  if (values === undefined) return
  const hourMs = values.hour * SECOND_MS
  const providers = providersNamed(values.provider)
  const plans = Array.from({ length: Math.ceil(values.count / values.jobs) }, (_, index) => {
    const jobs = Math.min(values.jobs, values.count - index * values.jobs)
    return blackoutOf(values.from + index, { providers, jobs, hourMs })
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
        ...providerOption(EACH_ITS_PART),
        'at-once': { default: 3, means: 'deployments at a time' },
        ...ONLY,
        story: { default: false, means: 'the story of every run, not only of the broken ones' },
      },
    },
    args,
  )
  if (values === undefined) return
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'tools', 'build.mjs')], { stdio: 'inherit' })
  const product = new Product()
  await withServer(() =>
    atEach(values, (provider, count) => processesAt({ provider, product }, { ...values, count })),
  ).finally(() => product.remove())
}

async function processesAt(
  at: { provider: CloudProvider; product: Product },
  values: Omit<CrashOptions, 'points'>,
): Promise<void> {
  const first = await runProcesses(undisturbedProcesses(), at)
  tellCrash(first, values.story)
  const points = pointsWith(values.only, pointsOf(new Map([['plain', first.calls]])))
  const reports = await inLanes(seedsOf(values), { atOnce: values['at-once'] }, async (seed) => {
    const report = await runProcesses(processPlanOf(seed, points, at.provider), at)
    tellCrash(report, values.story)
    return report
  })
  printTable([first, ...reports], points)
}
